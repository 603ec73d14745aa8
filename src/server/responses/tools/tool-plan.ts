/** The tools of a response: who runs them, and their names for the client. */

import type { ToolCall, ToolDefinition } from "../../../chat/types.ts";
import type { Tool, ToolProvider } from "../../../tools/types.ts";
import { fieldError } from "../../body/field.ts";
import { newId } from "../../answer/ids.ts";
import type { ToolChoice } from "../../body/tools.ts";
import { callsOfItems } from "../calls/client-calls.ts";
import type { ToolNames } from "../input/messages.ts";
import type { McpToolFilter, McpToolRequest, RequestedServers } from "./mcp-servers.ts";
import type { ResponsesRequest } from "../request.ts";
import { chosenNames } from "./tool-choice.ts";
import { flatName } from "./tools.ts";
import type { CallPresentation, Item, McpListToolsItem } from "../types.ts";
import { promptToolsOf, type ToolMode, withoutCalls } from "../../answer/target.ts";

export interface ToolPlan {
  mode: ToolMode;
  /** By the names of `offered`. */
  toolChoice: ToolChoice;
  /** The tools in the prompt. */
  offered: ToolDefinition[];
  names: ToolNames;
  present(toolName: string): CallPresentation;
  /** The tools of the request's MCP servers. */
  lists: McpListToolsItem[];
  /** The tools that this server runs, with and without approval. */
  serverTools: readonly Tool[];
}

/** A tool that the client runs. In held mode, another request brings the output. */
export type ClientTool = (definition: ToolDefinition) => Tool;

interface Entry {
  definition: ToolDefinition;
  presentation: CallPresentation;
  /** Null: the client runs it after the response. */
  tool: Tool | null;
}

type Provider = Pick<ToolProvider, "tools" | "servers">;

/** Sources of tools other than the client. */
export interface ToolSources {
  /** Null: no server is configured. */
  provider: Provider | null;
  requested: Pick<RequestedServers, "toolsOf">;
}

/**
 * @param clientTool null: calls of the client's functions end the response
 * @param items of the conversation
 */
export function planTools(
  request: Pick<ResponsesRequest, "tools" | "toolChoice" | "maxToolCalls">,
  { provider, requested }: ToolSources,
  clientTool: ClientTool | null,
  items: readonly Item[],
): ToolPlan {
  const lists: McpListToolsItem[] = [];
  const entries = request.tools === null ? implicitEntries(provider) : [];
  for (const tool of request.tools?.tools ?? []) {
    if (tool.kind !== "mcp") {
      const { kind, definition, name, namespace } = tool;
      const presentation: CallPresentation = { kind, name, namespace };
      entries.push({ definition, presentation, tool: clientTool?.(definition) ?? null });
    } else {
      const own = requested.toolsOf(tool.server);
      const served = own === undefined ? configuredEntries(tool, provider) : entriesOf(tool, own);
      lists.push(listItem(tool.server, served));
      entries.push(...served);
    }
  }
  if (request.tools !== null) refuseTwins(entries);
  const byName = new Map(entries.map((entry) => [entry.definition.name, entry]));
  const isOff = request.toolChoice.mode === "none";
  const servers = mcpToolsOf(request).map(({ server }) => server);
  const { allowed, ...choice } = request.toolChoice;
  const whole = modeOf([...byName.values()], request.maxToolCalls);
  const mode = isOff ? withoutCalls(whole, callsOfItems(items).length > 0) : whole;
  return {
    toolChoice: { ...choice, ...(allowed && { allowed: chosenNames(allowed, entries, servers) }) },
    mode,
    offered: [...promptToolsOf(mode)],
    names: namesOf([...byName.values()]),
    present: (name) => byName.get(name)?.presentation ?? { kind: "function", name },
    lists: isOff ? [] : lists,
    serverTools: [...byName.values()].flatMap(({ tool }) => tool ?? []),
  };
}

/** The model knows a tool by its name alone. @throws FermataError invalid_value */
function refuseTwins(entries: readonly Entry[]): void {
  const byName = new Map<string, Entry>();
  for (const entry of entries) {
    const { name } = entry.definition;
    const twin = byName.get(name);
    if (twin !== undefined) {
      const problem = `has two tools of the name "${name}": ${titleOf(twin)} and ${titleOf(entry)}`;
      const remedy = "Rename one that is yours, or leave one out with allowed_tools";
      throw fieldError("invalid_value", "tools", problem, remedy);
    }
    byName.set(name, entry);
  }
}

function titleOf({ presentation }: Entry): string {
  return presentation.kind === "mcp"
    ? `"${presentation.name}" of the MCP server "${presentation.server}"`
    : `the ${presentation.kind} "${presentation.name}"`;
}

function modeOf(entries: readonly Entry[], maxCalls: number | null): ToolMode {
  if (entries.length === 0) return { kind: "none" };
  const offered = entries.map(({ definition }) => definition);
  if (entries.every(({ tool }) => tool === null)) return { kind: "external", tools: offered };
  const byName = new Map(entries.map((entry) => [entry.definition.name, entry]));
  const handsOver = ({ name }: ToolCall): boolean => {
    const entry = byName.get(name);
    return entry !== undefined && (entry.tool === null || needsApproval(entry));
  };
  const tools = entries.flatMap(({ tool }) => tool ?? []);
  return {
    kind: "internal",
    tools,
    limits: { offered, handsOver, maxCalls: maxCalls ?? undefined },
  };
}

function needsApproval({ presentation }: Entry): boolean {
  return presentation.kind === "mcp" && presentation.needsApproval;
}

/** A request without tools gets those of all MCP servers, because the operator configured them for that. */
function implicitEntries(provider: Provider | null): Entry[] {
  return (provider?.tools() ?? []).map((tool) => mcpEntry(tool, () => false));
}

/** @throws FermataError invalid_value | mcp_server_unreachable: the server is configured, and has not started */
function configuredEntries(request: McpToolRequest, provider: Provider | null): Entry[] {
  const all = provider?.tools() ?? [];
  const tools = all.filter((tool) => tool.server === request.server);
  if (tools.length > 0) return entriesOf(request, tools);
  const servers = provider?.servers?.() ?? [];
  const field = `${request.field}.server_label`;
  const server = servers.find(({ name }) => name === request.server);
  if (server?.state === "ready") return [];
  if (server !== undefined) {
    const problem = `names an MCP server that has no tools now: its state is "${server.state}"`;
    const remedy = "Try again later; GET /api/tools says what is wrong with it";
    throw fieldError("mcp_server_unreachable", field, problem, remedy);
  }
  const known = new Set([...servers.map(({ name }) => name), ...all.map((tool) => tool.server)]);
  const labels = [...known].map((name) => `"${name}"`).join(", ");
  const remedy = known.size === 0 ? "No MCP server is configured" : `Send one of ${labels}`;
  throw fieldError("invalid_value", field, "names no configured server", remedy);
}

function entriesOf(
  { isAllowed, needsApproval: policy }: McpToolRequest,
  tools: readonly Tool[],
): Entry[] {
  return tools
    .filter((tool) => isAllowed(ownName(tool), tool.readOnly === true))
    .map((tool) => mcpEntry(tool, policy));
}

function mcpEntry(tool: Tool, policy: McpToolFilter): Entry {
  const name = ownName(tool);
  const asks = policy(name, tool.readOnly === true);
  return {
    definition: tool.definition,
    presentation: { kind: "mcp", server: tool.server, name, needsApproval: asks },
    tool,
  };
}

function ownName(tool: Tool): string {
  return tool.originalName ?? tool.definition.name;
}

function listItem(server: string, entries: readonly Entry[]): McpListToolsItem {
  const tools = entries.map(({ definition, presentation }) => ({
    name: presentation.name,
    description: definition.description ?? null,
    input_schema: definition.parameters,
    annotations: null,
  }));
  return { id: newId("mcpl"), type: "mcp_list_tools", server_label: server, tools, error: null };
}

/** A history may have calls of tools that no longer exist; their names keep the same form. */
function namesOf(entries: readonly Entry[]): ToolNames {
  const mcp = new Map<string, string>();
  for (const { definition, presentation } of entries) {
    if (presentation.kind === "mcp")
      mcp.set(`${presentation.server}\0${presentation.name}`, definition.name);
  }
  return {
    functionName: (name, namespace) => (namespace === undefined ? name : flatName(namespace, name)),
    mcpName: (server, name) => mcp.get(`${server}\0${name}`) ?? name,
  };
}

export function mcpToolsOf({ tools }: Pick<ResponsesRequest, "tools">): McpToolRequest[] {
  return (tools?.tools ?? []).flatMap((tool) => (tool.kind === "mcp" ? tool : []));
}
