/** Loaded with the first block of code. */

import type { ElementContent } from "hast";
import { common, createLowlight } from "lowlight";

const lowlight = createLowlight(common);

/** Null: the language is not known. */
export function highlight(text: string, language: string): ElementContent[] | null {
  if (!lowlight.registered(language)) return null;
  return lowlight.highlight(language, text).children as ElementContent[];
}
