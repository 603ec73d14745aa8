/** vLLM's and SGLang's fields of which tokens may be written, and which end the text. */

import type { TokenRules } from "../../engine/types.ts";
import { optional, type FieldTable, type ValuesOf, fieldError } from "./field.ts";
import { tokenId } from "./prompt-inputs.ts";
import { boolean, integer, list, mapped, text } from "./values.ts";

const maxInt32 = 2 ** 31 - 1;
/** Each is looked for before every token. */
const maxBadWords = 1000;
const maxBadWord = 1000;
const maxStopTokens = 256;

const badWord = text({ min: 1, max: maxBadWord });
const badWords = list(badWord, {
  max: maxBadWords,
  remedy: `Send up to ${maxBadWords} texts of 1 to ${maxBadWord} characters`,
});
const ids = (remedy: string, max?: number) =>
  mapped(list(tokenId, { remedy, ...(max === undefined ? {} : { max }) }), (given) =>
    given.length === 0 ? undefined : Int32Array.from(given),
  );

export const tokenRuleFields = {
  min_tokens: optional(
    integer(0, maxInt32),
    "before so many tokens no end token is written, and no stop string ends the text",
  ),
  stop_token_ids: optional(
    ids(`Send up to ${maxStopTokens} token ids`, maxStopTokens),
    "tokens that end the text, as stop strings do",
  ),
  bad_words: optional(badWords, "texts that are not written, as far as their usual tokens go"),
  allowed_token_ids: optional(
    ids("Send an array of token ids"),
    "the only tokens that are written; the end token is one only if it is listed",
  ),
  include_stop_str_in_output: optional(
    boolean,
    "`true`: the stop string or token that ended the text is part of it",
  ),
  no_stop_trim: optional(boolean, "the same under SGLang's name"),
} satisfies FieldTable;

/** Undefined: there are none. */
export function tokenRulesOf(
  given: Partial<ValuesOf<typeof tokenRuleFields>>,
): TokenRules | undefined {
  const { include_stop_str_in_output: includes, no_stop_trim: keeps } = given;
  if (includes !== undefined && keeps !== undefined && includes !== keeps) {
    const problem = "contradicts include_stop_str_in_output";
    throw fieldError("invalid_value", "no_stop_trim", problem, "Send one of the two");
  }
  const bannedTexts = given.bad_words ?? [];
  const rules = {
    minTokens: given.min_tokens || undefined,
    stopTokens: given.stop_token_ids,
    bannedTexts: bannedTexts.length === 0 ? undefined : bannedTexts,
    allowed: given.allowed_token_ids,
    keepsStop: (includes ?? keeps) || undefined,
  };
  return Object.values(rules).some((rule) => rule !== undefined) ? rules : undefined;
}
