/** GET /api/tools: what this server can run, and how those who run it are. */

import type { Route } from "../route.ts";
import { answer, choice, list, nullable, string, whole, boolean } from "../body/shapes.ts";
import type { ToolServerState } from "../../tools/types.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import { policyOf } from "../../tools/oversight.ts";
import { type KnownModel, knownModels, type ListServices } from "../answer/model-list.ts";
import { type ToolTokens, toolTokens } from "../answer/tool-tokens.ts";

const approvalPolicy = choice("never", "always");

const runnableTool = answer({
  name: string,
  description: nullable(string),
  read_only: boolean,
  approval: approvalPolicy,
});

const toolServer = answer({
  name: string,
  transport: choice("stdio", "http", "sse"),
  state: choice("starting", "ready", "restarting", "failed"),
  error: nullable(string),
  prompt_tokens: nullable(whole),
  tools: list(runnableTool),
});

export function toolsRoute(
  services: ListServices & Pick<ServerServices, "tools" | "agents">,
  { asksPerson = false }: Pick<ServerConfig, "asksPerson">,
): Route {
  const { tools, agents, models } = services;
  return {
    at: "GET /api/tools",
    summary: "The tools that this server runs, and the state of their servers.",
    answer: answer({
      servers: list(toolServer),
      prompt_tokens: nullable(whole),
      context_size: nullable(whole),
      agents: list(answer({ name: string, description: string })),
      models: list(
        answer({
          id: string,
          tool_section: nullable(choice("template", "generic")),
          tool_format: nullable(string),
        }),
      ),
    }),
    handler: async () => {
      // Of several, the one that was used last.
      const current = models === undefined ? services : models.loaded()[0];
      const tokens =
        current === undefined ? null : await toolTokens(current.chat, tools?.tools() ?? []);
      return {
        servers: (tools?.servers?.() ?? []).map((server) => wireServer(server, tokens, asksPerson)),
        prompt_tokens: tokens?.total ?? null,
        context_size: current?.model.contextSize ?? null,
        agents: (agents?.names() ?? []).map((name) => ({
          name,
          description: agents?.find(name)?.description ?? "",
        })),
        models: knownModels(services).map(wireModel),
      };
    },
  };
}

/** How it reads and writes tools is known once it is in memory. */
function wireModel({ names, loaded }: KnownModel) {
  return {
    id: names[0],
    tool_section: loaded?.model.toolSection ?? null,
    tool_format: loaded?.model.toolFormat ?? null,
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
