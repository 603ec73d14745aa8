/** Content of a message item: a string or text parts. */

import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "../body/fields.ts";

const textTypes = new Set(["input_text", "output_text", "text", "refusal"]);

/** Parts in the spelling of the role's direction: what an assistant said is output. */
export function parseItemContent(value: unknown, role: string, field: string): JsonObject[] {
  const type = role === "assistant" ? "output_text" : "input_text";
  if (isAbsent(value)) {
    const problem = value === null ? "must not be null" : "is missing";
    throw fieldError("missing_field", field, problem, "Send the message's text as a string");
  }
  if (typeof value === "string") return [textPart(type, value)];
  if (Array.isArray(value))
    return value.map((part, index) => textPart(type, parsePart(part, `${field}[${index}]`)));
  const problem = `must be a string or an array of parts, not ${kindOf(value)}`;
  throw fieldError("invalid_type", field, problem, "Send text as a string");
}

function textPart(type: string, text: string): JsonObject {
  return type === "output_text" ? { type, text, annotations: [] } : { type, text };
}

function parsePart(part: unknown, field: string): string {
  if (!isObject(part)) {
    const problem = `must be an object, not ${kindOf(part)}`;
    throw fieldError("invalid_type", field, problem, 'Send {"type": "input_text", "text": "…"}');
  }
  const { type } = part;
  if (type === "input_image" || type === "image_url") {
    const problem = "is an image, and the model reads text only";
    throw fieldError("image_not_supported", `${field}.type`, problem, "Send text parts only");
  }
  if (type === "input_file" || type === "input_audio") {
    const problem = `is "${type}", and the model reads text only`;
    throw fieldError("unsupported_value", `${field}.type`, problem, "Send text parts only");
  }
  if (typeof type !== "string" || !textTypes.has(type)) {
    const code = isAbsent(type) ? "missing_field" : "invalid_value";
    const problem = isAbsent(type) ? "is missing" : "is not a known kind of part";
    throw fieldError(code, `${field}.type`, problem, 'Send "input_text"');
  }
  const key = type === "refusal" ? "refusal" : "text";
  const text = part[key];
  if (typeof text === "string") return text;
  const code = text === undefined ? "missing_field" : "invalid_type";
  const problem = `must be a string, not ${kindOf(text)}`;
  throw fieldError(code, `${field}.${key}`, problem, "Send the part's text as a string");
}
