/** Prompts of requests that have no messages: texts or token ids. */

import type { Parts } from "../../parts.ts";
import { type Type, fieldError, inParts, kindOf, partsOf } from "./field.ts";
import { either, list, mapped, notNull, text } from "./values.ts";

/** Prompts of one request to a completions endpoint. */
export const maxPrompts = 128;

/** A text is yet to be tokenized. */
export type PromptInput = string | Int32Array;

/** Id of a token of the loaded model. */
export const tokenId: Type<number> = {
  schema: { type: "integer", minimum: 0 },
  remedy: "Send token ids of the loaded model",
  read(value, path, { vocabularySize = 0 }) {
    const remedy = `Send token ids from 0 to ${vocabularySize - 1}`;
    if (typeof value !== "number")
      throw fieldError("invalid_type", path, `must be a number, not ${kindOf(value)}`, remedy);
    if (Number.isInteger(value) && value >= 0 && value < vocabularySize) return value;
    throw fieldError("invalid_value", path, "is not a token of the model", remedy);
  },
};

/** @param min how many at least */
export function tokenIds(min: 0 | 1): Type<Int32Array> {
  const remedy = "Send an array of token ids";
  return mapped(list(tokenId, { min, remedy }), (ids) => Int32Array.from(ids));
}

const someTokens = tokenIds(1);

/** A text, tokens, or a list of up to `most` of either. @param min characters of a text */
export function promptInputs(most: number, min: 0 | 1): Type<PromptInput[]> {
  const remedy = `Send a text, an array of token ids, or an array of up to ${most} of either`;
  const prompt = text({ min, remedy });
  const one = either({ string: prompt, array: someTokens }, "a text or an array of tokens", remedy);
  const several = list(one, { min: 1, max: most, remedy });
  const schema = { anyOf: [someTokens.schema, several.schema] };
  const array = inParts({ schema, remedy }, function* (value, path, reading): Parts<PromptInput[]> {
    const isTokens = Array.isArray(value) && value.length > 0 && value.every(isNumber);
    return isTokens
      ? [yield* partsOf(someTokens, value, path, reading)]
      : yield* partsOf(several, value, path, reading);
  });
  const string = mapped(prompt, (given): PromptInput[] => [given]);
  return notNull(either({ string, array }, "a text or an array", remedy));
}

export function isNumber(value: unknown): boolean {
  return typeof value === "number";
}
