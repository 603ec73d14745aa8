/** `tools` and `tool_choice` of an Anthropic request. */

import type { ToolDefinition } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, readBoolean } from "../body/fields.ts";
import type { ToolChoice } from "../body/tool-choice.ts";
import { uniqueTools } from "../body/tools.ts";
import type { Warn } from "../body/warnings.ts";

const legalName = /^[A-Za-z0-9_.-]{1,128}$/;

/** Null if the request gives no tools at all, which is not the same as giving none. */
export function parseTools(value: unknown, warn: Warn): ToolDefinition[] | null {
  if (isAbsent(value)) return null;
  if (!Array.isArray(value)) {
    const problem = `must be an array, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "tools", problem, "Send an array of tools");
  }
  return uniqueTools(
    value,
    (entry, field) => parseTool(entry, field, warn),
    (field) => `${field}.name`,
  );
}

/** Null for a tool that Anthropic's servers run: skipped, for clients send some unasked. */
function parseTool(entry: unknown, field: string, warn: Warn): ToolDefinition | null {
  if (!isObject(entry)) {
    const remedy = 'Send {"name": …, "input_schema": …}';
    throw fieldError("invalid_type", field, `must be an object, not ${kindOf(entry)}`, remedy);
  }
  const { type, name, description, input_schema: schema } = entry;
  if (!isAbsent(type) && typeof type !== "string") {
    const problem = `must be a string, not ${kindOf(type)}`;
    throw fieldError("invalid_type", `${field}.type`, problem, 'Send "custom"');
  }
  if (typeof type === "string" && type !== "custom") {
    warn(`tools[].type=${type}`, "is not a tool of the client and is skipped");
    return null;
  }
  if (typeof name !== "string" || !legalName.test(name)) {
    const code =
      name === undefined
        ? "missing_field"
        : typeof name === "string"
          ? "invalid_value"
          : "invalid_type";
    const problem = name === undefined ? "is missing" : "is not a legal name";
    const remedy = "Send 1 to 128 letters, digits, underscores, dots or hyphens";
    throw fieldError(code, `${field}.name`, problem, remedy);
  }
  if (!isAbsent(description) && typeof description !== "string") {
    const problem = `must be a string, not ${kindOf(description)}`;
    throw fieldError("invalid_type", `${field}.description`, problem, "Send a string");
  }
  if (!isObject(schema)) {
    const code = schema === undefined ? "missing_field" : "invalid_type";
    const problem = `must be a JSON Schema object, not ${kindOf(schema)}`;
    const remedy = 'Send {"type": "object"} for a tool without input';
    throw fieldError(code, `${field}.input_schema`, problem, remedy);
  }
  return {
    name,
    ...(isAbsent(description) ? {} : { description }),
    parameters: schema,
  };
}

export interface AnthropicToolChoice extends ToolChoice {
  parallel: boolean;
}

export function parseToolChoice(value: unknown): AnthropicToolChoice {
  if (isAbsent(value)) return { mode: "auto", parallel: true };
  const remedy = 'Send {"type": "auto"}, "any", "none", or {"type": "tool", "name": …}';
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "tool_choice", problem, remedy);
  }
  const parallel = !readBoolean(value, "disable_parallel_tool_use", false);
  const { type, name } = value;
  if (type === "auto" || type === "none") return { mode: type, parallel };
  if (type === "any") return { mode: "required", parallel };
  if (type === "tool") {
    if (typeof name !== "string")
      throw fieldError("missing_field", "tool_choice.name", "must name a tool", remedy);
    return { mode: "required", allowed: [name], parallel };
  }
  const code =
    type === undefined
      ? "missing_field"
      : typeof type === "string"
        ? "invalid_value"
        : "invalid_type";
  throw fieldError(code, "tool_choice.type", "is not a known choice", remedy);
}
