/** Calls without markers, by their first character. They are calls if they name offered tools. */

import { byFirstCharacter } from "./first-character.ts";
import { ListReader } from "./list-reader.ts";
import { ObjectReader } from "./object-reader.ts";
import type { MakeReader } from "./reader.ts";

const object: MakeReader = (sink, offered) => new ObjectReader(sink, offered);
const list: MakeReader = (sink, offered) => new ListReader(sink, offered);

/** A JSON object, or a list of them. */
export const bareJson: Readonly<Record<string, MakeReader>> = {
  "{": object,
  "[": byFirstCharacter({ "{": list }, { skipped: "[" }),
};
