/** `tools` and `tool_choice` of a chat completion, and what all wires have of a tool. */

import { isDeepStrictEqual } from "node:util";
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

/** Tools of different names: one that is listed twice is one. An entry that is skipped, for clients send hosted tools unasked, reads as null. */
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
        const earlier = tools.get(tool.name);
        if (earlier !== undefined && !isDeepStrictEqual(earlier, tool)) {
          const problem = "is used by an earlier tool that is not the same";
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

export interface ToolChoice {
  mode: "auto" | "none" | "required";
  /** Names of the tools that may be called; undefined: all. */
  allowed?: string[];
  /** One call of the tool it names. */
  named?: boolean;
}

const name = { type: "string", minLength: 1 };
const named = { type: "object", properties: { name }, required: ["name"] };
/** Responses have the name beside the type, chat completions one level below. */
const tool = { type: "object", properties: { type: { type: "string" }, name, function: named } };
const allowedTools = {
  mode: { type: "string", enum: ["auto", "required"] },
  tools: { type: "array", items: tool, minItems: 1 },
};

/** Whether its names are offered is checked by `checkToolChoice`, when the tools are known. */
const toolChoice: Type<ToolChoice> = {
  schema: {
    anyOf: [
      { type: "string", enum: ["auto", "none", "required"] },
      {
        ...tool,
        properties: { ...tool.properties, type: { type: "string", enum: ["function", "custom"] } },
        required: ["type"],
      },
      {
        type: "object",
        properties: {
          type: { type: "string", enum: ["allowed_tools"] },
          ...allowedTools,
          allowed_tools: { type: "object", properties: allowedTools, required: ["mode", "tools"] },
        },
        required: ["type"],
      },
    ],
  },
  remedy:
    'Send "auto", "none", "required", {"type": "function", "function": {"name": …}} or allowed_tools',
  read(value, path) {
    if (value === "auto" || value === "none" || value === "required") return { mode: value };
    if (!isObject(value)) {
      const code = typeof value === "string" ? "invalid_value" : "invalid_type";
      throw fieldError(code, path, "is not a known choice", this.remedy);
    }
    const { type } = value;
    if (type === "function" || type === "custom")
      return { mode: "required", allowed: [nameOf(value, path)], named: true };
    if (type === "allowed_tools") return readAllowed(value, path);
    throw fieldError("unsupported_value", `${path}.type`, "is not a known choice", this.remedy);
  },
};

export const toolChoiceField = optional(
  toolChoice,
  "`auto`, `none`, `required`, a function, `allowed_tools`; default `auto`",
);
export const parallelField = optional(boolean, "`false`: one call in a round", true);

/** Chat completions nest it once more. */
function readAllowed(value: JsonObject, path: string): ToolChoice {
  const nested = value["allowed_tools"];
  const place = isObject(nested) ? `${path}.allowed_tools` : path;
  const { mode, tools } = isObject(nested) ? nested : value;
  if (mode !== "auto" && mode !== "required") {
    const remedy = 'Send "auto" or "required"';
    throw fieldError("invalid_value", `${place}.mode`, "is not a known mode", remedy);
  }
  if (!Array.isArray(tools) || tools.length === 0) {
    const problem = "must be an array of tools";
    throw fieldError("invalid_value", `${place}.tools`, problem, "List at least one");
  }
  const allowed = tools.map((one: unknown, index) => {
    const entry = `${place}.tools[${index}]`;
    if (isObject(one)) return nameOf(one, entry);
    const problem = `must be an object, not ${kindOf(one)}`;
    throw fieldError("invalid_type", entry, problem, "Name a function");
  });
  return { mode, allowed: [...new Set(allowed)] };
}

function nameOf(value: JsonObject, path: string): string {
  const target = isObject(value["function"]) ? value["function"] : value;
  const place = target === value ? `${path}.name` : `${path}.function.name`;
  if (typeof target["name"] === "string" && target["name"] !== "") return target["name"];
  const code = target["name"] === undefined ? "missing_field" : "invalid_value";
  throw fieldError(code, place, "must name a tool", "Send the name of an offered tool");
}

/** @param tools those that this request can call, wherever they come from */
export function checkToolChoice(
  { mode, allowed }: ToolChoice,
  tools: readonly Pick<ToolDefinition, "name">[],
): void {
  if (mode === "required" && tools.length === 0) {
    const problem = "asks for a call, and there is no tool";
    throw fieldError("invalid_value", "tool_choice", problem, "Offer tools");
  }
  const names = new Set(tools.map((one) => one.name));
  const unknown = allowed?.find((one) => !names.has(one));
  if (unknown === undefined) return;
  const problem = `names the tool "${unknown.slice(0, 64)}", which is not offered`;
  throw fieldError("invalid_value", "tool_choice", problem, "Name one of tools");
}
