/** `tools` of a chat completion, and what all wires have of a tool. */

import type { ToolDefinition } from "../../chat/types.ts";
import { optional, required, type Type, type ValuesOf } from "./field.ts";
import { fieldError, isObject, kindOf, type JsonObject } from "./fields.ts";
import { boolean, mapped, object, record, text } from "./values.ts";

/** A tool's name. @param max characters */
export function toolName(max: number): Type<string> {
  const legal = new RegExp(`^[A-Za-z0-9_.-]{1,${max}}$`);
  return {
    schema: { type: "string", pattern: legal.source },
    remedy: `Send 1 to ${max} letters, digits, underscores, dots or hyphens`,
    read(value, path) {
      if (typeof value === "string" && legal.test(value)) return value;
      const code = typeof value === "string" ? "invalid_value" : "invalid_type";
      throw fieldError(code, path, "is not a legal name", this.remedy);
    },
  };
}

/** JSON Schema of a tool's arguments. */
export function argumentsSchema(remedy: string): Type<JsonObject> {
  return {
    ...record(remedy),
    read(value, path) {
      if (isObject(value)) return value;
      const problem = `must be a JSON Schema object, not ${kindOf(value)}`;
      throw fieldError("invalid_type", path, problem, remedy);
    },
  };
}

export const description = optional(text({ remedy: "Send a string" }));

export const functionFields = {
  name: required(toolName(64)),
  description,
  parameters: optional(argumentsSchema("Leave it out for a tool without arguments"), "", {
    type: "object",
    properties: {},
  }),
  strict: optional(boolean),
};

/** Name, description and parameters of a function, wherever the API puts them. */
export const functionDefinition = mapped(
  object(functionFields, 'Send {"name": …, "parameters": …}', "passed over"),
  definitionOf,
);

export function definitionOf({
  name,
  description: about,
  parameters,
  strict,
}: ValuesOf<typeof functionFields>): ToolDefinition {
  return {
    name,
    ...(about === undefined ? {} : { description: about }),
    parameters,
    ...(strict === undefined ? {} : { strict }),
  };
}

/** Tools of different names. An entry that is skipped, for clients send hosted tools unasked, reads as null. */
export function toolList<Tool extends { name: string }>(
  entry: Type<Tool | null>,
  /** Where a tool has its name. */
  nameField: string,
): Type<Tool[]> {
  const remedy = "Send an array of tools";
  return {
    schema: { type: "array", items: entry.schema },
    remedy,
    read(value, path, reading) {
      if (!Array.isArray(value))
        throw fieldError("invalid_type", path, `must be an array, not ${kindOf(value)}`, remedy);
      const tools = new Map<string, Tool>();
      for (const [index, one] of value.entries()) {
        const place = `${path}[${index}]`;
        const tool = entry.read(one, place, reading);
        if (tool === null) continue;
        if (tools.has(tool.name)) {
          const problem = "is used by an earlier tool";
          const other = "Give each tool its own name";
          throw fieldError("invalid_value", `${place}.${nameField}`, problem, other);
        }
        tools.set(tool.name, tool);
      }
      return [...tools.values()];
    },
  };
}

const functionTool: Type<ToolDefinition | null> = {
  schema: {
    type: "object",
    properties: {
      type: { type: "string", enum: ["function"] },
      function: functionDefinition.schema,
    },
    required: ["type", "function"],
  },
  remedy: "Send a function tool",
  read(value, path, reading) {
    const { type, function: target } = record(this.remedy).read(value, path, reading);
    const kind = required(text({ remedy: 'Send "function"' })).read(type, `${path}.type`, reading);
    if (kind === "function")
      return required(functionDefinition).read(target, `${path}.function`, reading);
    reading.warn(`tools[].type=${kind}`, "is not a function tool and is skipped");
    return null;
  },
};

/** Undefined if the request gives no tools at all, which is not the same as giving none. */
export const toolsField = optional(
  toolList(functionTool, "function.name"),
  "of type `function`; others are skipped with a warning",
);
