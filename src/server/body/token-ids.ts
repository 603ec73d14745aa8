import { fieldError, kindOf } from "./fields.ts";

/** An array of ids of the loaded model's tokens. */
export function parseTokens(value: unknown, field: string, vocabularySize: number): Int32Array {
  const remedy = `Send an array of token ids from 0 to ${vocabularySize - 1}`;
  if (!Array.isArray(value))
    throw fieldError("invalid_type", field, `must be an array, not ${kindOf(value)}`, remedy);
  if (value.length === 0) throw fieldError("invalid_value", field, "is empty", remedy);
  return Int32Array.from(value, (token: unknown, index) => {
    const path = `${field}[${index}]`;
    if (typeof token !== "number")
      throw fieldError("invalid_type", path, `must be a number, not ${kindOf(token)}`, remedy);
    if (!Number.isInteger(token) || token < 0 || token >= vocabularySize)
      throw fieldError("invalid_value", path, "is not a token of the model", remedy);
    return token;
  });
}
