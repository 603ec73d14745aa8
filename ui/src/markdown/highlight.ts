/** Loaded when the first block of code appears. */

import type { ElementContent } from "hast";
import { common, createLowlight } from "lowlight";

const lowlight = createLowlight(common);

/** Null if the language is unknown. */
export function highlight(text: string, language: string): ElementContent[] | null {
  if (!lowlight.registered(language)) return null;
  return lowlight.highlight(language, text).children as ElementContent[];
}
