/** `tools` of a response: functions, custom tools, namespaces of both, MCP servers. */

import type { ToolDefinition } from "../../../chat/types.ts";
import { required, type Type, fieldError, isAbsent } from "../../body/field.ts";
import { type JsonObject, isJsonObject } from "../../../json.ts";
import { customTool, functionDefinition, toolName } from "../../body/tools.ts";
import { list, mapped, object, record, tagged } from "../../body/values.ts";
import { mcpTool, type McpToolRequest } from "./mcp-servers.ts";

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

interface OneTool {
  tools: RequestedTool[];
  wire: JsonObject;
}

const showTool = 'Send {"type": "function", "name": …}';

/** Some clients send the nested form of chat completions. */
const functionTool: Type<ToolDefinition> = {
  ...functionDefinition,
  read(value, path, reading) {
    const { name, function: nested } = record(showTool).read(value, path, reading);
    return isJsonObject(nested) && isAbsent(name)
      ? functionDefinition.read(nested, `${path}.function`, reading)
      : functionDefinition.read(value, path, reading);
  },
};

/** Templates know plain functions only, so a namespace's are renamed for the model, and back in the answer. */
const namespace = mapped(
  object(
    {
      name: required(toolName(64)),
      tools: required(
        list(
          tagged(
            {
              function: mapped(functionTool, (definition) => ({
                kind: "function" as const,
                definition,
              })),
              custom: mapped(customTool, (definition) => ({
                kind: "custom" as const,
                definition,
              })),
            },
            {
              remedy: "Send a function tool",
              others: { warning: "is skipped", remedy: 'Send "function"' },
              untagged: () => "undefined",
            },
          ),
          { remedy: "Send the namespace's functions" },
        ),
      ),
    },
    'Send {"name": …, "tools": […]}',
    "passed over",
  ),
  ({ name: namespace, tools }): RequestedTool[] =>
    tools
      .filter((tool) => tool !== null)
      .map(({ kind, definition }) => {
        const { name } = definition;
        return {
          kind,
          definition: { ...definition, name: flatName(namespace, name) },
          name,
          namespace,
        };
      }),
);

/** What a type of tool reads to, with what the response repeats of it. */
function repeated<Value>(
  type: Type<Value>,
  toolsOf: (value: Value) => RequestedTool[],
  wireOf: (entry: JsonObject, value: Value) => JsonObject,
): Type<OneTool> {
  return {
    ...type,
    read(value, path, reading) {
      const read = type.read(value, path, reading);
      return { tools: toolsOf(read), wire: wireOf(value as JsonObject, read) };
    },
  };
}

/** Clients send hosted tools unasked, so other types are skipped. */
const responseTool = tagged(
  {
    function: repeated(
      functionTool,
      (definition) => [{ kind: "function", definition, name: definition.name }],
      wireFunction,
    ),
    custom: repeated(
      customTool,
      (definition) => [{ kind: "custom", definition, name: definition.name }],
      wireCustomTool,
    ),
    namespace: repeated(
      namespace,
      (tools) => tools,
      (entry) => ({ type: "namespace", ...entry }),
    ),
    mcp: repeated(mcpTool, (tool) => [{ kind: "mcp", ...tool }], publicMcpTool),
  },
  {
    remedy: showTool,
    others: { warning: "is not run here and is skipped", remedy: 'Send "function"' },
  },
);

export const responseTools: Type<RequestedTools> = mapped(
  list(responseTool, { remedy: "Send an array of tools" }),
  (entries, path) => {
    // One that is listed twice is one.
    const byText = new Map(
      entries.flatMap((entry) => (entry === null ? [] : [[JSON.stringify(entry), entry]])),
    );
    const known = [...byText.values()];
    const tools = known.flatMap((entry) => entry.tools);
    refuseTwins(tools, path);
    return { tools, wire: known.map(({ wire }) => wire) };
  },
);

export function flatName(namespace: string, name: string): string {
  return `${namespace.replaceAll(".", "_")}__${name}`;
}

function refuseTwins(tools: readonly RequestedTool[], path: string): void {
  const names = new Set<string>();
  for (const tool of tools) {
    const name = tool.kind === "mcp" ? `mcp ${tool.server}` : tool.definition.name;
    if (names.has(name)) {
      const problem = `has two tools of the name "${tool.kind === "mcp" ? tool.server : tool.name}"`;
      throw fieldError("invalid_value", path, problem, "Give each tool its own name");
    }
    names.add(name);
  }
}

function wireFunction(
  entry: JsonObject,
  { name, description, parameters }: ToolDefinition,
): JsonObject {
  const target = isJsonObject(entry["function"]) ? entry["function"] : entry;
  return {
    type: "function",
    name,
    description: description ?? null,
    parameters,
    strict: target["strict"] === true,
  };
}

function wireCustomTool({ name: own, description: about, format }: JsonObject): JsonObject {
  return {
    type: "custom",
    name: own,
    description: about ?? null,
    format: format ?? { type: "text" },
  };
}

/** Credentials go nowhere: neither back nor into the store. */
function publicMcpTool(entry: JsonObject): JsonObject {
  const { headers: _headers, authorization: _authorization, ...rest } = entry;
  return { type: "mcp", ...rest };
}
