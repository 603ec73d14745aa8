/** A tool of type `custom`: its input is text. The model knows it as a function with one string. */

import type { ToolDefinition } from "../../chat/types.ts";
import {
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readText,
  type JsonObject,
} from "../body/fields.ts";
import { functionDefinition } from "../body/tools.ts";
import type { Warn } from "../body/warnings.ts";

/** What its input must look like. */
interface InputFormat {
  /** Of the one string. */
  schema: JsonObject;
  /** For the model, behind the description. */
  note: string;
}

const free: InputFormat = { schema: { type: "string" }, note: "" };

export function parseCustomTool(entry: JsonObject, field: string, warn: Warn): ToolDefinition {
  const { name, description } = functionDefinition.read({ ...entry, parameters: null }, field, {
    warn,
  });
  const { schema, note } = readFormat(entry["format"], `${field}.format`, warn);
  const told = [description ?? "", note].filter((text) => text !== "").join("\n\n");
  return {
    name,
    ...(told === "" ? {} : { description: told }),
    parameters: {
      type: "object",
      properties: { input: schema },
      required: ["input"],
      additionalProperties: false,
    },
  };
}

/** As the response repeats it. */
export function wireCustomTool({ name, description, format }: JsonObject): JsonObject {
  return {
    type: "custom",
    name,
    description: description ?? null,
    format: format ?? { type: "text" },
  };
}

function readFormat(value: unknown, field: string, warn: Warn): InputFormat {
  if (isAbsent(value)) return free;
  const remedy = 'Send {"type": "text"} or {"type": "grammar", "syntax": …, "definition": …}';
  if (!isObject(value))
    throw fieldError("invalid_type", field, `must be an object, not ${kindOf(value)}`, remedy);
  if (value["type"] === "text") return free;
  if (value["type"] !== "grammar")
    throw fieldError("invalid_value", `${field}.type`, "is not a known format", remedy);
  const definition = readText(value, "definition", `${field}.`);
  if (definition === null)
    throw fieldError("missing_field", `${field}.definition`, "is missing", remedy);
  const { syntax } = value;
  if (syntax === "regex") {
    return {
      schema: { type: "string", pattern: `^(?:${definition})$` },
      note: `The input matches this regular expression: ${definition}`,
    };
  }
  if (syntax !== "lark")
    throw fieldError("invalid_value", `${field}.syntax`, "is not a known syntax", remedy);
  warn("tools[].format.syntax=lark", "is told to the model and not enforced");
  return { ...free, note: `The input follows this grammar, in Lark's syntax:\n${definition}` };
}
