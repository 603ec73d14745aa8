/** The agents of a server, by name. */

import { FermataError } from "../errors.ts";
import type { Tool, ToolProvider } from "../tools/types.ts";
import type { AgentConfig, AgentsConfig } from "./agents-config.ts";
import { RemoteChat } from "./remote/remote-chat.ts";
import type { Agent, AgentModel } from "./types.ts";

interface AgentParts {
  /** Of the agents that have none of their own. */
  served: AgentModel;
  /** By path: of the agents that have a file. */
  files: ReadonlyMap<string, AgentModel>;
  /** Null: no MCP server is configured. */
  tools: Pick<ToolProvider, "tools"> | null;
}

export class AgentDirectory {
  readonly supervisor: string;
  readonly #agents: ReadonlyMap<string, Agent>;

  constructor({ supervisor, agents }: AgentsConfig, parts: AgentParts) {
    this.supervisor = supervisor;
    this.#agents = new Map(
      [...agents.values()].map((config) => [config.name, createAgent(config, parts)]),
    );
  }

  /** In the file's order. */
  names(): string[] {
    return [...this.#agents.keys()];
  }

  find(name: string): Agent | undefined {
    return this.#agents.get(name);
  }
}

function createAgent(config: AgentConfig, parts: AgentParts): Agent {
  const { name, description, instructions, limits, sampling, delegates } = config;
  return {
    name,
    description,
    instructions,
    limits,
    sampling,
    delegates,
    model: modelOf(config, parts),
    tools: () => (parts.tools?.tools() ?? []).filter((tool) => mayCall(config, tool)),
  };
}

function mayCall({ tools }: AgentConfig, { server, originalName, definition }: Tool): boolean {
  const allowed = tools.get(server);
  if (allowed === undefined) return false;
  return allowed === "*" || allowed.has(originalName ?? definition.name);
}

function modelOf({ source }: AgentConfig, { served, files }: AgentParts): AgentModel {
  if (source.kind === "endpoint") return RemoteChat.model(source.endpoint);
  const model = source.kind === "file" ? files.get(source.path) : served;
  if (model === undefined) throw new FermataError("internal_error", "An agent's model is missing.");
  return model;
}
