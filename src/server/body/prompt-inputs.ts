/** Prompts of requests that have no messages: texts or token ids. */

import type { Type } from "./field.ts";
import { fieldError, kindOf } from "./fields.ts";
import { text } from "./values.ts";

/** Prompts of one request to a completions endpoint. */
export const maxPrompts = 128;

/** A text is yet to be tokenized. */
export type PromptInput = string | Int32Array;

/** Ids of the loaded model's tokens. @param min how many at least */
export function tokenIds(min: 0 | 1): Type<Int32Array> {
  return {
    schema: { type: "array", items: { type: "integer", minimum: 0 }, minItems: min },
    remedy: 'Send {"tokens": […]}',
    read(value, path, { vocabularySize = 0 }) {
      const remedy = `Send an array of token ids from 0 to ${vocabularySize - 1}`;
      if (!Array.isArray(value))
        throw fieldError("invalid_type", path, `must be an array, not ${kindOf(value)}`, remedy);
      if (value.length < min) throw fieldError("invalid_value", path, "is empty", remedy);
      return Int32Array.from(value, (id: unknown, index) => {
        const place = `${path}[${index}]`;
        if (typeof id !== "number")
          throw fieldError("invalid_type", place, `must be a number, not ${kindOf(id)}`, remedy);
        if (!Number.isInteger(id) || id < 0 || id >= vocabularySize)
          throw fieldError("invalid_value", place, "is not a token of the model", remedy);
        return id;
      });
    },
  };
}

const someTokens = tokenIds(1);

/** A text, tokens, or a list of up to `most` of either. @param min characters of a text */
export function promptInputs(most: number, min: 0 | 1): Type<PromptInput[]> {
  const remedy = `Send a text, an array of token ids, or an array of up to ${most} of either`;
  const prompt = text({ min, remedy });
  const list = { type: "array", minItems: 1, maxItems: most };
  return {
    schema: {
      anyOf: [
        prompt.schema,
        someTokens.schema,
        { ...list, items: { anyOf: [prompt.schema, someTokens.schema] } },
      ],
    },
    remedy,
    read(value, path, reading) {
      if (typeof value === "string") return [prompt.read(value, path, reading)];
      if (value === null) throw fieldError("missing_field", path, "is missing", remedy);
      if (!Array.isArray(value)) {
        const problem = `must be a text or an array, not ${kindOf(value)}`;
        throw fieldError("invalid_type", path, problem, remedy);
      }
      if (value.length === 0) throw fieldError("invalid_value", path, "is empty", remedy);
      if (value.every((entry) => typeof entry === "number"))
        return [someTokens.read(value, path, reading)];
      if (value.length > most)
        throw fieldError("invalid_value", path, `has ${value.length} entries`, remedy);
      return value.map((entry: unknown, index) => {
        const place = `${path}[${index}]`;
        if (typeof entry === "string") return prompt.read(entry, place, reading);
        if (Array.isArray(entry)) return someTokens.read(entry, place, reading);
        const problem = `must be a text or an array of tokens, not ${kindOf(entry)}`;
        throw fieldError("invalid_type", place, problem, remedy);
      });
    },
  };
}
