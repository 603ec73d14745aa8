/** `tools` of a chat completion. */

import type { ToolDefinition } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "./fields.ts";
import type { Warn } from "./warnings.ts";

const legalName = /^[A-Za-z0-9_.-]{1,64}$/;

/** Null if the request gives no tools at all, which is not the same as giving none. */
export function parseTools(value: unknown, warn: Warn): ToolDefinition[] | null {
  if (isAbsent(value)) return null;
  if (!Array.isArray(value))
    throw fieldError(
      "invalid_type",
      "tools",
      `must be an array, not ${kindOf(value)}`,
      "Send an array of tools",
    );
  return uniqueTools(
    value,
    (entry, field) => parseTool(entry, field, warn),
    (field) => `${field}.function.name`,
  );
}

/**
 * @param parse gives null for one that is skipped
 * @param nameField where a tool has its name
 */
export function uniqueTools(
  list: readonly unknown[],
  parse: (entry: unknown, field: string) => ToolDefinition | null,
  nameField: (field: string) => string,
): ToolDefinition[] {
  const tools = new Map<string, ToolDefinition>();
  list.forEach((entry, index) => {
    const field = `tools[${index}]`;
    const tool = parse(entry, field);
    if (tool === null) return;
    if (tools.has(tool.name)) {
      const remedy = "Give each tool its own name";
      throw fieldError("invalid_value", nameField(field), "is used by an earlier tool", remedy);
    }
    tools.set(tool.name, tool);
  });
  return [...tools.values()];
}

/** Null for a tool of a type that is not run here: skipped, for clients send hosted tools unasked. */
function parseTool(entry: unknown, field: string, warn: Warn): ToolDefinition | null {
  if (!isObject(entry))
    throw fieldError(
      "invalid_type",
      field,
      `must be an object, not ${kindOf(entry)}`,
      "Send a function tool",
    );
  const { type } = entry;
  if (typeof type !== "string") {
    const code = type === undefined ? "missing_field" : "invalid_type";
    throw fieldError(
      code,
      `${field}.type`,
      `must be a string, not ${kindOf(type)}`,
      'Send "function"',
    );
  }
  if (type !== "function") {
    warn(`tools[].type=${type}`, "is not a function tool and is skipped");
    return null;
  }
  const target = entry["function"];
  if (!isObject(target)) {
    const code = target === undefined ? "missing_field" : "invalid_type";
    throw fieldError(
      code,
      `${field}.function`,
      `must be an object, not ${kindOf(target)}`,
      'Send {"name": …, "parameters": …}',
    );
  }
  return parseFunction(target, `${field}.function`);
}

/** Name, description and parameters of a function, wherever the API puts them. */
export function parseFunction(target: JsonObject, field: string): ToolDefinition {
  const { name, description, parameters, strict } = target;
  if (typeof name !== "string" || !legalName.test(name)) {
    const code =
      name === undefined
        ? "missing_field"
        : typeof name === "string"
          ? "invalid_value"
          : "invalid_type";
    const problem = name === undefined ? "is missing" : "is not a legal name";
    throw fieldError(
      code,
      `${field}.name`,
      problem,
      "Send 1 to 64 letters, digits, underscores, dots or hyphens",
    );
  }
  if (!isAbsent(description) && typeof description !== "string") {
    throw fieldError(
      "invalid_type",
      `${field}.description`,
      `must be a string, not ${kindOf(description)}`,
      "Send a string",
    );
  }
  if (!isAbsent(parameters) && !isObject(parameters)) {
    throw fieldError(
      "invalid_type",
      `${field}.parameters`,
      `must be a JSON Schema object, not ${kindOf(parameters)}`,
      "Leave it out for a tool without arguments",
    );
  }
  if (!isAbsent(strict) && typeof strict !== "boolean") {
    throw fieldError(
      "invalid_type",
      `${field}.strict`,
      `must be a boolean, not ${kindOf(strict)}`,
      "Send true or false",
    );
  }
  return {
    name,
    ...(isAbsent(description) ? {} : { description }),
    parameters: isAbsent(parameters) ? { type: "object", properties: {} } : parameters,
    ...(typeof strict === "boolean" ? { strict } : {}),
  };
}
