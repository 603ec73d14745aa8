/** The result of a tool, as clients send it: text, content parts, or any JSON. */

import { fieldError, isObject } from "../body/fields.ts";

const textTypes = new Set(["input_text", "output_text", "text"]);

/** Text stays; parts stay parts; any other value becomes its JSON. */
export function parseOutput(value: unknown, field: string): unknown {
  if (value === undefined)
    throw fieldError("missing_field", field, "is missing", "Send the tool's result as a string");
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every(isPart)) return value;
  return JSON.stringify(value);
}

/** What the model reads of it. */
export function outputText(output: unknown): string {
  if (typeof output === "string") return output;
  if (!Array.isArray(output)) return "";
  return output.map(partText).join("\n");
}

function isPart(part: unknown): boolean {
  if (!isObject(part) || typeof part["type"] !== "string") return false;
  return textTypes.has(part["type"])
    ? typeof part["text"] === "string"
    : part["type"] === "input_image" || part["type"] === "input_file";
}

/** The model reads text only, and should know that there was something else. */
function partText(part: unknown): string {
  const { type, text, filename } = part as { type: string; text?: string; filename?: unknown };
  if (textTypes.has(type)) return text ?? "";
  if (type === "input_image") return "[an image, which the model cannot see]";
  const name = typeof filename === "string" ? ` ${filename}` : "";
  return `[a file${name}, which the model cannot read]`;
}
