/** Content blocks: what they are, and the text in them. */

import { fieldError, isObject, kindOf, type JsonObject } from "../body/fields.ts";

/** A string stands for one block of text. */
export function blocksOf(value: unknown, field: string): (string | JsonObject)[] {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) {
    const problem = `must be a string or an array of content blocks, not ${kindOf(value)}`;
    throw fieldError("invalid_type", field, problem, "Send text as a string");
  }
  return value.map((block: unknown, index) => {
    if (isObject(block)) return block;
    const problem = `must be an object, not ${kindOf(block)}`;
    const remedy = 'Send {"type": "text", "text": "…"}';
    throw fieldError("invalid_type", `${field}[${index}]`, problem, remedy);
  });
}

export function typeOf(block: JsonObject, field: string): string {
  const { type } = block;
  if (typeof type === "string") return type;
  const code = type === undefined ? "missing_field" : "invalid_type";
  const looksLikeResult = type === undefined && typeof block["tool_use_id"] === "string";
  const remedy = looksLikeResult
    ? 'Send "tool_result": without it a model would not see the result'
    : 'Send "text" or another kind of block';
  const problem = `must be a string, not ${kindOf(type)}`;
  throw fieldError(code, `${field}.type`, problem, remedy);
}

/** Of a text block, a document of plain text or a search result. */
export function parseText(block: JsonObject, field: string): string {
  switch (typeOf(block, field)) {
    case "text":
      return readText(block["text"], `${field}.text`);
    case "document":
      return parseDocument(block, field);
    case "search_result":
      return `${readText(block["title"], `${field}.title`)}\n${readText(block["source"], `${field}.source`)}\n${parseTexts(block["content"], `${field}.content`)}`;
    case "tool_reference":
      return readText(block["tool_name"], `${field}.tool_name`);
    case "image":
      throw fieldError(
        "image_not_supported",
        `${field}.type`,
        "is an image, and the model reads text only",
        "Send text blocks only",
      );
    default:
      throw fieldError(
        "unsupported_value",
        `${field}.type`,
        "is not a kind of block that can stand here",
        "Send text blocks",
      );
  }
}

function parseTexts(value: unknown, field: string): string {
  return blocksOf(value, field)
    .map((part, index) => (typeof part === "string" ? part : parseText(part, `${field}[${index}]`)))
    .join("\n");
}

function parseDocument(block: JsonObject, field: string): string {
  const source = block["source"];
  if (isObject(source) && source["type"] === "text")
    return readText(source["data"], `${field}.source.data`);
  const remedy = 'Send {"type": "text", "media_type": "text/plain", "data": "…"}';
  if (!isObject(source)) {
    const code = source === undefined ? "missing_field" : "invalid_type";
    throw fieldError(code, `${field}.source`, `must be an object, not ${kindOf(source)}`, remedy);
  }
  throw fieldError("unsupported_value", `${field}.source.type`, "is not plain text", remedy);
}

function readText(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  const code = value === undefined ? "missing_field" : "invalid_type";
  throw fieldError(code, field, `must be a string, not ${kindOf(value)}`, "Send text as a string");
}
