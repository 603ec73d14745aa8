/** Where an answer ends: at stop strings and at a limit of tokens. */

import { optional, type FieldTable, type Type } from "./field.ts";
import { fieldError } from "./fields.ts";
import type { SamplingLimits } from "./sampling.ts";
import { either, integer, list, mapped, text } from "./values.ts";

const maxStops = 16;
/** Each sequence has a table of that length. */
const maxStopLength = 1000;
const stopRemedy = `Send up to ${maxStops} strings of 1 to ${maxStopLength} characters`;
const stopText = text({ min: 1, max: maxStopLength, remedy: stopRemedy });

export const stopList = list(stopText, { max: maxStops, remedy: stopRemedy });

export const stopField = optional(
  either({ string: mapped(stopText, (stop) => [stop]), array: stopList }, "an array", stopRemedy),
  `up to ${maxStops} strings`,
  [],
);

const anyLimit = integer(-1);

/** -1 is no limit, as llama-server's clients ask for it. */
export const tokenLimit: Type<number> = {
  ...mapped(anyLimit, (limit, path) => {
    if (limit !== 0) return limit;
    throw fieldError("invalid_value", path, "must not be 0", "Send 1 or more, or -1 for no limit");
  }),
  schema: { anyOf: [{ type: "integer", minimum: 1 }, { const: -1 }] },
};

export const maxTokensFields = {
  max_completion_tokens: optional(tokenLimit, "-1 is no limit; at most the context"),
  max_tokens: optional(tokenLimit, "the same under its old name; `max_completion_tokens` wins"),
  n_predict: optional(tokenLimit, "the same under llama-server's name; the others win"),
} satisfies FieldTable;

interface MaxTokens {
  max_completion_tokens?: number | undefined;
  max_tokens?: number | undefined;
  n_predict?: number | undefined;
}

/**
 * Undefined: no limit but the context's. More than the context holds is no error: agents send one fixed number to
 * every model.
 */
export function maxTokensOf(
  given: MaxTokens,
  { contextSize, maxTokens }: Pick<SamplingLimits, "contextSize" | "maxTokens">,
  otherwise?: number,
): number | undefined {
  const { max_completion_tokens, max_tokens, n_predict } = given;
  const limit = max_completion_tokens ?? max_tokens ?? n_predict ?? maxTokens ?? otherwise;
  return limit === undefined || limit === -1 ? undefined : Math.min(limit, contextSize);
}
