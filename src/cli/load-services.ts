/** The services that options name: the store, MCP servers, agents with models of their own. */

import { isPostgresAddress } from "../store/postgres/address.ts";
import { openStoreThread } from "../store/sqlite/store-thread.ts";
import type { OpenStore } from "../store/types.ts";
import type { ServeConfig } from "./options/serve-options.ts";
import { credentialsPath, packageVersion, storePath } from "./folders.ts";
import type { McpLogger, McpServerConfig } from "../mcp/settings.ts";
import { mcpServerFromCommand, readMcpConfig } from "../mcp/config.ts";
import type { McpHost } from "../mcp/host.ts";
import type { ServerConnector, ToolProvider } from "../tools/types.ts";
import { AgentDirectory } from "../agents/agent-directory.ts";
import { type AgentsConfig, checkAgentServers, readAgentsConfig } from "../agents/agents-config.ts";
import type { AgentModel } from "../agents/types.ts";
import type { Chat } from "../chat/chat.ts";
import { FermataError } from "../errors.ts";
import type { AgentEngine } from "../server/services.ts";
import type { Logger, ToolLogger } from "../chat/types.ts";
import type { OwnModel } from "./load-models.ts";

const whatPreventsIt = new Set<string>(["store_invalid", "store_in_use", "store_unavailable"]);

/** As `openNamedStore`; with --store-optional null, too, if it throws: nothing is kept then. */
export async function openStore(
  config: ServeConfig,
  log: Logger & { error: Logger["warn"] },
): Promise<OpenStore | null> {
  try {
    return await openNamedStore(config, log);
  } catch (error) {
    const { code, message } = error as FermataError;
    if (!config.storeOptional || !whatPreventsIt.has(code)) throw error;
    log.error({ code, reason: message }, "serving without a store: nothing is kept");
    return null;
  }
}

/**
 * Null: nothing is kept. Where the default store is another server's, this one has a store of its own, named by its
 * port: people serve two models side by side.
 * @throws FermataError store_invalid | store_in_use | store_unavailable
 */
async function openNamedStore(config: ServeConfig, log: Logger): Promise<OpenStore | null> {
  const path = storePath(config);
  if (path === null) return null;
  const { days, responses, megabytes } = config.storeLimits;
  const limits = {
    maxCount: responses,
    maxAgeSeconds: days * 24 * 3600,
    maxBytes: megabytes * 1024 ** 2,
  };
  if (isPostgresAddress(path)) {
    // Only who needs it waits for it.
    const { openPostgresStore } = await import("../store/postgres/postgres-store.ts");
    return await openPostgresStore(path, { limits });
  }
  try {
    return await openStoreThread(path, { limits });
  } catch (error) {
    const isTaken = error instanceof FermataError && error.code === "store_in_use";
    if (!isTaken || config.store !== undefined) throw error;
    const own = path.replace(/\.sqlite$/, `-${config.port}.sqlite`);
    log.warn({ store: own }, `the store ${path} is another server's: this one keeps ${own}`);
    return await openStoreThread(own, { limits });
  }
}

/** @throws FermataError mcp_config_invalid */
export function mcpServers(config: ServeConfig): McpServerConfig[] {
  if (config.mcpConfig !== undefined) return readMcpConfig(config.mcpConfig);
  if (config.mcpCommand !== undefined)
    return [mcpServerFromCommand(config.mcpCommand, config.mcpArgs)];
  return [];
}

/** The MCP SDK takes as long to import as all the rest: only who needs it waits for it. */
export async function createMcpHost(
  config: ServeConfig,
  servers: McpServerConfig[],
  log: McpLogger,
  model: string,
): Promise<McpHost> {
  const { McpHost } = await import("../mcp/host.ts");
  const { McpCredentials } = await import("../mcp/login/credentials.ts");
  return new McpHost(servers, {
    ...limitsOf(config),
    log,
    version: packageVersion(),
    model,
    credentials: new McpCredentials(credentialsPath()),
    refreshMs: config.mcpToolRefreshSeconds * 1000,
    // Whoever names one server on the command line wants that one.
    mustStart: config.mcpCommand !== undefined,
  });
}

/** Undefined: requests may name none of their own. */
export async function requestedServers(
  config: ServeConfig,
  log: McpLogger,
): Promise<ServerConnector | undefined> {
  if (!config.allowRequestMcp) return undefined;
  const { requestServerConnector } = await import("../mcp/request-server.ts");
  return requestServerConnector({ ...limitsOf(config), log, version: packageVersion() });
}

function limitsOf({ toolTimeout, maxToolOutputBytes }: ServeConfig) {
  return {
    // The tool loop's own time-out comes first and says so; this one is the backstop.
    toolTimeoutMs: toolTimeout.silence * 1000 + 1000,
    maxResultBytes: maxToolOutputBytes,
  };
}

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
  load(path: string): Promise<OwnModel>;
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
    const { engine, chat, sampling, model } = await load(source.path);
    log.info({ agent: name, model: source.path }, "model of an agent loaded");
    if (!chat.hasTemplate) throw withoutTemplate(name, source.path);
    files.set(source.path, {
      chat,
      contextSize: engine.cache.cellsPerSequence,
      vocabularySize: engine.model.vocabularySize,
      sampling,
    });
    engines.push({ model: model.id, engine, chat });
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
