/** GET /api/tools: what this server can run, and how those who run it are. */

import type { RouteOptions } from "fastify";
import type { ToolServerState } from "../../../tools/types.ts";
import type { ServerServices } from "../../services.ts";

export function toolsRoute({
  tools,
  agents,
  model,
}: Pick<ServerServices, "tools" | "agents" | "model">): RouteOptions {
  return {
    method: "GET",
    url: "/api/tools",
    handler: async () => ({
      servers: (tools?.servers?.() ?? []).map(wireServer),
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
    }),
  };
}

function wireServer({ name, transport, state, error, tools }: ToolServerState) {
  return {
    name,
    transport,
    state,
    error,
    tools: tools.map(({ definition, readOnly = false, approval = "never" }) => ({
      name: definition.name,
      description: definition.description ?? null,
      read_only: readOnly,
      approval,
    })),
  };
}
