/** Agents and the models that only they have. */

import { AgentDirectory } from "../agents/agent-directory.ts";
import { type AgentsConfig, checkAgentServers, readAgentsConfig } from "../agents/agents-config.ts";
import type { AgentModel } from "../agents/types.ts";
import { Chat } from "../chat/chat.ts";
import type { Engine } from "../engine/engine.ts";
import { FermataError } from "../errors.ts";
import type { AgentEngine } from "../server/services.ts";
import type { ToolLogger } from "../chat/types.ts";
import type { ToolProvider } from "../tools/types.ts";
import { chooseModel } from "./model-choice.ts";
import type { ServeConfig } from "./options.ts";
import { modelsDirectory } from "./package-files.ts";

/** Null: none are configured. @throws FermataError agents_invalid */
export function readAgents(
  { agents: path }: ServeConfig,
  servers: readonly string[],
): AgentsConfig | null {
  if (path === undefined) return null;
  const config = readAgentsConfig(path, process.env);
  checkAgentServers(config, path, servers);
  return config;
}

/** The longest that a caller is held for an agent. */
export function longestDelegationSeconds(config: AgentsConfig | null): number {
  const agents = [...(config?.agents.values() ?? [])];
  return Math.max(0, ...agents.map(({ limits }) => limits.seconds));
}

interface LoadAgentsOptions {
  served: AgentModel & { path: string; chat: Chat };
  tools: ToolProvider | null;
  log: ToolLogger;
  /** Loads a file; the engine is the caller's to close. */
  load(path: string): Promise<Engine>;
}

/** Files are loaded one after the other, each once. @throws as `Engine.load` */
export async function loadAgents(
  config: AgentsConfig,
  { served, tools, log, load }: LoadAgentsOptions,
): Promise<{ directory: AgentDirectory; engines: AgentEngine[] }> {
  const files = new Map<string, AgentModel>([[served.path, served]]);
  for (const { name, source } of config.agents.values())
    if (source.kind === "served" && !served.chat.hasTemplate)
      throw withoutTemplate(name, served.path);
  const engines: AgentEngine[] = [];
  for (const { name, source } of config.agents.values()) {
    if (source.kind !== "file" || files.has(source.path)) continue;
    const engine = await load(source.path);
    log.info({ agent: name, model: source.path }, "model of an agent loaded");
    const chat = new Chat(engine, { logger: log });
    if (!chat.hasTemplate) throw withoutTemplate(name, source.path);
    const { id, sampling } = chooseModel(source.path, modelsDirectory);
    files.set(source.path, {
      chat,
      contextSize: engine.cache.cellsPerSequence,
      vocabularySize: engine.model.vocabularySize,
      sampling,
    });
    engines.push({ model: id, engine, chat });
  }
  const directory = new AgentDirectory(config, { served, files, tools });
  log.info({ agents: directory.names(), supervisor: directory.supervisor }, "agents");
  return { directory, engines };
}

function withoutTemplate(agent: string, path: string): FermataError {
  return new FermataError(
    "agents_invalid",
    `The agent "${agent}" cannot chat: ${path} has no chat template. Take an instruct model.`,
  );
}
