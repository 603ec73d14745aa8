/** Limits that end a text at a line: llama-server's `n_indent` and `t_max_predict_ms`, which editors send. */

import { optional, type FieldTable, type ValuesOf } from "./field.ts";
import { integer } from "./values.ts";

const maxInt32 = 2 ** 31 - 1;

export const lineLimitFields = {
  n_indent: optional(
    integer(-maxInt32, maxInt32),
    "spaces and tabs that each line after the first begins with: the text ends before a line that has fewer, such as an empty one; 0 and less: no limit",
    0,
  ),
  t_max_predict_ms: optional(
    integer(-maxInt32, maxInt32),
    "milliseconds since the first token, after which the next line break ends the text; 0 and less: no limit",
    0,
  ),
} satisfies FieldTable;

/** 0 and less: no limit. */
export interface LineLimits {
  /** Spaces and tabs at the beginning of each line but the first. */
  indent: number;
  /** Since the first token. */
  milliseconds: number;
}

export function lineLimitsOf(given: ValuesOf<typeof lineLimitFields>): LineLimits {
  return { indent: given.n_indent, milliseconds: given.t_max_predict_ms };
}
