/** `tool_choice` and `parallel_tool_calls`, as chat completions and responses spell them. */

import type { ToolDefinition } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "./fields.ts";

export interface ToolChoice {
  mode: "auto" | "none" | "required";
  /** Names of the tools that may be called; undefined: all. */
  allowed?: string[];
  /** One call of the tool it names. */
  named?: boolean;
}

const remedy =
  'Send "auto", "none", "required", {"type": "function", "function": {"name": …}} or allowed_tools';

/** Whether its names are offered is checked by `checkToolChoice`, when the tools are known. */
export function parseToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value) || value === "auto") return { mode: "auto" };
  if (value === "none" || value === "required") return { mode: value };
  if (!isObject(value)) {
    const code = typeof value === "string" ? "invalid_value" : "invalid_type";
    throw fieldError(code, "tool_choice", "is not a known choice", remedy);
  }
  const { type } = value;
  if (type === "function" || type === "custom")
    return { mode: "required", allowed: [nameOf(value, "tool_choice")], named: true };
  if (type === "allowed_tools") return parseAllowed(value);
  throw fieldError("unsupported_value", "tool_choice.type", "is not a known choice", remedy);
}

/** Chat completions nest it once more. */
function parseAllowed(value: JsonObject): ToolChoice {
  const nested = value["allowed_tools"];
  const field = isObject(nested) ? "tool_choice.allowed_tools" : "tool_choice";
  const { mode, tools } = isObject(nested) ? nested : value;
  if (mode !== "auto" && mode !== "required")
    throw fieldError(
      "invalid_value",
      `${field}.mode`,
      "is not a known mode",
      'Send "auto" or "required"',
    );
  if (!Array.isArray(tools) || tools.length === 0)
    throw fieldError(
      "invalid_value",
      `${field}.tools`,
      "must be an array of tools",
      "List at least one",
    );
  const allowed = tools.map((tool: unknown, index) => {
    const place = `${field}.tools[${index}]`;
    if (!isObject(tool))
      throw fieldError(
        "invalid_type",
        place,
        `must be an object, not ${kindOf(tool)}`,
        "Name a function",
      );
    return nameOf(tool, place);
  });
  return { mode, allowed: [...new Set(allowed)] };
}

function nameOf(value: JsonObject, field: string): string {
  const target = isObject(value["function"]) ? value["function"] : value;
  const place = target === value ? `${field}.name` : `${field}.function.name`;
  const { name } = target;
  if (typeof name === "string" && name !== "") return name;
  const code = name === undefined ? "missing_field" : "invalid_value";
  throw fieldError(code, place, "must name a tool", "Send the name of an offered tool");
}

/** @param tools those that this request can call, wherever they come from */
export function checkToolChoice(
  { mode, allowed }: ToolChoice,
  tools: readonly Pick<ToolDefinition, "name">[],
): void {
  if (mode === "required" && tools.length === 0)
    throw fieldError(
      "invalid_value",
      "tool_choice",
      "asks for a call, and there is no tool",
      "Offer tools",
    );
  const names = new Set(tools.map(({ name }) => name));
  const unknown = allowed?.find((name) => !names.has(name));
  if (unknown !== undefined)
    throw fieldError(
      "invalid_value",
      "tool_choice",
      `names the tool "${unknown.slice(0, 64)}", which is not offered`,
      "Name one of tools",
    );
}
