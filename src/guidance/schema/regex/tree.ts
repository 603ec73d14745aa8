/** A regular expression as a tree. */

import type { CharacterSet } from "./sets.ts";

export type Regex =
  | { kind: "empty" }
  | CharacterSet
  | { kind: "concat"; parts: readonly Regex[] }
  | { kind: "or"; options: readonly Regex[] }
  | { kind: "repeat"; body: Regex; min: number; max: number }
  | { kind: "start" }
  | { kind: "end" }
  | Look;

/** At what stands before or behind a place. Only `parseWithLooks` gives it. */
export interface Look {
  kind: "look";
  ahead: boolean;
  negated: boolean;
  body: Regex;
}

/** Follows "the pattern". */
export class RegexError extends SyntaxError {}
