/** Message content: a string, text parts, null or nothing. */

import { fieldError, isAbsent, isObject, kindOf } from "./fields.ts";

/** Text parts are joined by newlines. Absent and null give "". */
export function parseContent(value: unknown, field: string): string {
  if (isAbsent(value)) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value))
    return value.map((part, index) => parsePart(part, `${field}[${index}]`)).join("\n");
  throw fieldError(
    "invalid_type",
    field,
    `must be a string or an array of parts, not ${kindOf(value)}`,
    "Send text as a string",
  );
}

/** Content of a role that is nothing without it. */
export function parseRequiredContent(value: unknown, field: string): string {
  if (isAbsent(value)) {
    const problem = value === null ? "must not be null" : "is missing";
    throw fieldError("missing_field", field, problem, "Send the message's text as a string");
  }
  return parseContent(value, field);
}

function parsePart(part: unknown, field: string): string {
  if (!isObject(part)) {
    throw fieldError(
      "invalid_type",
      field,
      `must be an object, not ${kindOf(part)}`,
      'Send {"type": "text", "text": "…"}',
    );
  }
  const { type } = part;
  if (type === "image_url" || type === "input_image") {
    throw fieldError(
      "image_not_supported",
      `${field}.type`,
      "is an image, and the model reads text only",
      "Send text parts only",
    );
  }
  if (type === "input_audio" || type === "file") {
    throw fieldError(
      "unsupported_value",
      `${field}.type`,
      `is "${type}", and the model reads text only`,
      "Send text parts only",
    );
  }
  const textKey = type === "refusal" ? "refusal" : "text";
  if (type !== "text" && type !== "refusal") {
    const problem = type === undefined ? "is missing" : "is not a known kind of part";
    throw fieldError(
      type === undefined ? "missing_field" : "invalid_value",
      `${field}.type`,
      problem,
      'Send "text"',
    );
  }
  const text = part[textKey];
  if (typeof text !== "string") {
    const code = text === undefined ? "missing_field" : "invalid_type";
    throw fieldError(
      code,
      `${field}.${textKey}`,
      `must be a string, not ${kindOf(text)}`,
      "Send the part's text as a string",
    );
  }
  return text;
}
