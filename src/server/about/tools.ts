/** GET /api/tools: what this server can run, and how those who run it are. */

import type { RouteOptions } from "fastify";
import type { ToolServerState } from "../../tools/types.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import { policyOf } from "../../tools/oversight.ts";
import { type ToolTokens, toolTokens } from "../answer/tool-tokens.ts";

export function toolsRoute(
  { chat, tools, agents, model }: Pick<ServerServices, "chat" | "tools" | "agents" | "model">,
  { asksPerson = false }: Pick<ServerConfig, "asksPerson">,
): RouteOptions {
  return {
    method: "GET",
    url: "/api/tools",
    handler: async () => {
      const tokens = await toolTokens(chat, tools?.tools() ?? []);
      return {
        servers: (tools?.servers?.() ?? []).map((server) => wireServer(server, tokens, asksPerson)),
        prompt_tokens: tokens?.total ?? null,
        context_size: model.contextSize,
        agents: (agents?.names() ?? []).map((name) => ({
          name,
          description: agents?.find(name)?.description ?? "",
        })),
        models: [
          {
            id: model.id,
            tool_section: model.toolSection ?? null,
            tool_format: model.toolFormat ?? null,
          },
        ],
      };
    },
  };
}

function wireServer(
  { name, transport, state, error, tools }: ToolServerState,
  tokens: ToolTokens | null,
  asksPerson: boolean,
) {
  return {
    name,
    transport,
    state,
    error,
    /** Of the prompt, in a request that has all tools. */
    prompt_tokens: tokens === null ? null : (tokens.byServer[name] ?? 0),
    tools: tools.map((tool) => ({
      name: tool.definition.name,
      description: tool.definition.description ?? null,
      read_only: tool.readOnly ?? false,
      /** In conversations: the other wires ask for what the operator's policy says alone. */
      approval: policyOf(tool, asksPerson),
    })),
  };
}
