/** `tools` of a response: functions, custom tools, namespaces of both, MCP servers. */

import type { ToolDefinition } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "../body/fields.ts";
import { schemaOf, type Schema, type Type } from "../body/field.ts";
import { functionDefinition, functionFields } from "../body/tools.ts";
import type { Warn } from "../body/warnings.ts";
import { parseCustomTool, wireCustomTool } from "./custom-tool.ts";
import { parseMcpTool, type McpToolRequest } from "./mcp-servers.ts";

export interface FunctionTool {
  /** Under the name that the model knows it by. */
  definition: ToolDefinition;
  name: string;
  namespace?: string | undefined;
}

export type RequestedTool =
  | ({ kind: "function" | "custom" } & FunctionTool)
  | ({ kind: "mcp" } & McpToolRequest);

export interface RequestedTools {
  /** In the request's order. */
  tools: RequestedTool[];
  /** As the response object repeats them; those that were skipped are left out. */
  wire: JsonObject[];
}

const string = { type: "string" };
const toolSchema = (type: string, required: string[], properties: object): Schema => ({
  type: "object",
  properties: { type: { type: "string", enum: [type] }, ...properties },
  required: ["type", ...required],
});
const functionSchema = schemaOf(functionFields);
const grammarSyntax = { type: "string", enum: ["lark", "regex"] };

export const responseTools: Type<RequestedTools> = {
  schema: {
    type: "array",
    items: {
      anyOf: [
        toolSchema("function", ["name"], functionSchema["properties"] as object),
        toolSchema("custom", ["name"], {
          name: functionFields.name.type.schema,
          description: string,
          format: {
            anyOf: [
              toolSchema("text", [], {}),
              toolSchema("grammar", ["syntax", "definition"], {
                syntax: grammarSyntax,
                definition: string,
              }),
            ],
          },
        }),
        toolSchema("mcp", ["server_label"], { server_label: string, server_url: string }),
      ],
    },
  },
  remedy: "Send an array of tools",
  read(value, path, { warn }) {
    if (!Array.isArray(value)) {
      const problem = `must be an array, not ${kindOf(value)}`;
      throw fieldError("invalid_type", path, problem, this.remedy);
    }
    const requested: RequestedTools = { tools: [], wire: [] };
    value.forEach((entry: unknown, index) => addTool(requested, entry, `${path}[${index}]`, warn));
    refuseTwins(requested.tools);
    return requested;
  },
};

function addTool(requested: RequestedTools, entry: unknown, field: string, warn: Warn): void {
  if (!isObject(entry)) {
    const problem = `must be an object, not ${kindOf(entry)}`;
    throw fieldError("invalid_type", field, problem, "Send a tool");
  }
  const { type } = entry;
  if (typeof type !== "string") {
    const code = isAbsent(type) ? "missing_field" : "invalid_type";
    const problem = `must be a string, not ${kindOf(type)}`;
    throw fieldError(code, `${field}.type`, problem, 'Send "function"');
  }
  if (type === "function") {
    const tool = parseFunctionTool(entry, field, warn);
    requested.tools.push({ kind: "function", ...tool });
    requested.wire.push(wireFunction(entry, tool.definition));
  } else if (type === "custom") {
    const definition = parseCustomTool(entry, field, warn);
    requested.tools.push({ kind: "custom", definition, name: definition.name });
    requested.wire.push(wireCustomTool(entry));
  } else if (type === "namespace") {
    requested.tools.push(...parseNamespace(entry, field, warn));
    requested.wire.push(entry);
  } else if (type === "mcp") {
    requested.tools.push({ kind: "mcp", ...parseMcpTool(entry, field) });
    requested.wire.push(publicMcpTool(entry));
  } else {
    // Clients send hosted tools unasked: a refusal would lock them out.
    warn(`tools[].type=${type.slice(0, 40)}`, "is not run here and is skipped");
  }
}

function parseFunctionTool(entry: JsonObject, field: string, warn: Warn): FunctionTool {
  // Some clients send the nested form of chat completions.
  const nested = entry["function"];
  const isNested = isObject(nested) && isAbsent(entry["name"]);
  const target = isNested ? nested : entry;
  const place = isNested ? `${field}.function` : field;
  const definition = functionDefinition.read(target, place, { warn });
  return { definition, name: definition.name };
}

/** Templates know plain functions only: a namespace's are renamed for the model, and back in the answer. */
function parseNamespace(entry: JsonObject, field: string, warn: Warn): RequestedTool[] {
  const { name: namespace, tools } = entry;
  if (typeof namespace !== "string" || !/^[A-Za-z0-9_.-]{1,64}$/.test(namespace)) {
    const remedy = "Send 1 to 64 letters, digits, underscores, dots or hyphens";
    throw fieldError("invalid_value", `${field}.name`, "is not a legal name", remedy);
  }
  if (!Array.isArray(tools)) {
    const problem = `must be an array, not ${kindOf(tools)}`;
    throw fieldError("invalid_type", `${field}.tools`, problem, "Send the namespace's functions");
  }
  return tools.flatMap((tool: unknown, index): RequestedTool[] => {
    const toolField = `${field}.tools[${index}]`;
    if (!isObject(tool)) {
      const problem = `must be an object, not ${kindOf(tool)}`;
      throw fieldError("invalid_type", toolField, problem, "Send a function tool");
    }
    const kind = tool["type"];
    if (kind !== "function" && kind !== "custom") {
      warn(`tools[].tools[].type=${String(kind).slice(0, 40)}`, "is skipped");
      return [];
    }
    const definition =
      kind === "custom"
        ? parseCustomTool(tool, toolField, warn)
        : parseFunctionTool(tool, toolField, warn).definition;
    const { name } = definition;
    return [
      { kind, definition: { ...definition, name: flatName(namespace, name) }, name, namespace },
    ];
  });
}

export function flatName(namespace: string, name: string): string {
  return `${namespace.replaceAll(".", "_")}__${name}`;
}

function refuseTwins(tools: readonly RequestedTool[]): void {
  const names = new Set<string>();
  for (const tool of tools) {
    const name = tool.kind === "mcp" ? `mcp ${tool.server}` : tool.definition.name;
    if (names.has(name)) {
      const problem = `has two tools of the name "${tool.kind === "mcp" ? tool.server : tool.name}"`;
      throw fieldError("invalid_value", "tools", problem, "Give each tool its own name");
    }
    names.add(name);
  }
}

function wireFunction(
  entry: JsonObject,
  { name, description, parameters }: ToolDefinition,
): JsonObject {
  const target = isObject(entry["function"]) ? entry["function"] : entry;
  return {
    type: "function",
    name,
    description: description ?? null,
    parameters,
    strict: target["strict"] === true,
  };
}

/** Credentials go nowhere: neither back nor into the store. */
function publicMcpTool(entry: JsonObject): JsonObject {
  const { headers: _headers, authorization: _authorization, ...rest } = entry;
  return rest;
}
