/** Prompts of requests that have no messages: texts or token ids. */

import { fieldError, isAbsent, kindOf } from "./fields.ts";
import { parseTokens } from "./token-ids.ts";

/** A text is yet to be tokenized. */
export type PromptInput = string | Int32Array;

/** A text, tokens, or a list of either. */
export function readInputs(
  value: unknown,
  field: string,
  vocabularySize: number,
  most: number,
): PromptInput[] {
  const remedy = `Send a text, an array of token ids, or an array of up to ${most} of either`;
  if (isAbsent(value)) throw fieldError("missing_field", field, "is missing", remedy);
  if (typeof value === "string") return [readText(value, field, remedy)];
  if (!Array.isArray(value))
    throw fieldError(
      "invalid_type",
      field,
      `must be a text or an array, not ${kindOf(value)}`,
      remedy,
    );
  if (value.length === 0) throw fieldError("invalid_value", field, "is empty", remedy);
  if (value.every((entry) => typeof entry === "number"))
    return [parseTokens(value, field, vocabularySize)];
  if (value.length > most)
    throw fieldError("invalid_value", field, `has ${value.length} entries`, remedy);
  return value.map((entry: unknown, index) => {
    const path = `${field}[${index}]`;
    if (typeof entry === "string") return readText(entry, path, remedy);
    if (Array.isArray(entry)) return parseTokens(entry, path, vocabularySize);
    const problem = `must be a text or an array of tokens, not ${kindOf(entry)}`;
    throw fieldError("invalid_type", path, problem, remedy);
  });
}

function readText(text: string, field: string, remedy: string): string {
  if (text === "") throw fieldError("invalid_value", field, "is empty", remedy);
  return text;
}
