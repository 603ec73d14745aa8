import { fieldError, isAbsent, isObject, kindOf } from "./fields.ts";

const maxEntries = 16;
const maxKeyLength = 64;
const maxValueLength = 512;

/** `metadata` of a response or a conversation, within OpenAI's limits. */
export function parseMetadata(value: unknown): Record<string, string> {
  if (isAbsent(value)) return {};
  const remedy = `Send up to ${maxEntries} strings by name`;
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "metadata", problem, remedy);
  }
  const entries = Object.entries(value);
  if (entries.length > maxEntries)
    throw fieldError("invalid_value", "metadata", `has ${entries.length} entries`, remedy);
  for (const [key, text] of entries) {
    const field = `metadata.${key.slice(0, maxKeyLength)}`;
    if (typeof text !== "string")
      throw fieldError("invalid_type", field, `must be a string, not ${kindOf(text)}`, remedy);
    if (key.length > maxKeyLength || text.length > maxValueLength) {
      const limit = `Send names of up to ${maxKeyLength} and values of up to ${maxValueLength} characters`;
      throw fieldError("invalid_value", field, "is too long", limit);
    }
  }
  return Object.fromEntries(entries) as Record<string, string>;
}
