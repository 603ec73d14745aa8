// Agents over any chat, as `--agents` would make them.
import { AgentDirectory } from "../../src/agents/agent-directory.ts";
import { parseAgentsConfig } from "../../src/agents/agents-config.ts";
import type { AgentModel } from "../../src/agents/types.ts";
import type { Tool } from "../../src/tools/types.ts";
import { greedy } from "./sampling.ts";

export interface AgentsJson {
  supervisor: string;
  instructions?: string;
  agents: Record<string, object>;
}

export function agentDirectory(
  json: AgentsJson,
  chat: AgentModel["chat"],
  parts: { tools?: () => Tool[]; contextSize?: number } = {},
): AgentDirectory {
  const { seed: _seed, logitBias: _logitBias, ...sampling } = greedy;
  const { tools, contextSize = 8192 } = parts;
  return new AgentDirectory(parseAgentsConfig(json, "agents.json", process.env), {
    served: { chat, contextSize, vocabularySize: 4000, sampling },
    files: new Map(),
    tools: tools === undefined ? null : { tools },
  });
}
