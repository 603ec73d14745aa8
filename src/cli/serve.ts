/** The composition root: configuration in, a service out, listening or not. */

import { basename } from "node:path";
import type { FastifyInstance } from "fastify";
import type { McpServerConfig } from "../mcp/mcp-settings.ts";
import type { AgentsConfig } from "../agents/agents-config.ts";
import { Chat } from "../chat/chat.ts";
import { Embedder } from "../engine/embedder.ts";
import { Engine } from "../engine/engine.ts";
import type { EngineStats } from "../engine/types.ts";
import { Approvals } from "../tools/approvals.ts";
import { CallAudit } from "../tools/call-audit.ts";
import { loadAddon } from "../native/addon.ts";
import { buildServer } from "../server/app.ts";
import { type PageFiles, readPageFiles } from "../server/about/page.ts";
import type { ServedEmbedder, ServedModel, ServerConfig } from "../server/services.ts";
import { WatchedKeys } from "./keys-file.ts";
import { type BannerFacts, bannerText, chatText, countTools } from "./banner.ts";
import {
  createMcpHost,
  loadAgents,
  longestDelegationSeconds,
  mcpServers,
  openStore,
  readAgents,
  requestedServers,
} from "./load-services.ts";
import { createLogger } from "./logger.ts";
import { chooseModel, modelCreated } from "./model-files.ts";
import { engineOptionsOf } from "./engine-config.ts";
import type { ServeConfig } from "./options.ts";
import { modelsDirectory, packageVersion, pageDirectory } from "./folders.ts";
import { assertPortFree, listen } from "./port.ts";
import { createProgress } from "./progress.ts";

/** A round is seldom of more calls; who allows more rounds allows more calls. */
const callsPerRound = 8;

export interface RunningServer {
  url: string;
  /** Stops accepting, ends what runs, ends MCP servers, frees the model. Idempotent. */
  close(): Promise<void>;
  /** Opens the audit log again, which may have been renamed. */
  reload(): void;
}

/** Everything but the port. */
export interface Service extends Pick<RunningServer, "close" | "reload"> {
  app: FastifyInstance;
  facts: Omit<BannerFacts, "url">;
  /** Of the inference threads' current steps the longest so far; 0 while they are idle. */
  stepAgeMs(): number;
}

/**
 * In this process. `signal` gives the start up, wherever it is.
 * @throws FermataError, after which nothing is left running
 */
export async function serve(config: ServeConfig, signal: AbortSignal): Promise<RunningServer> {
  await assertPortFree(config.port, config.host);
  const { app, facts, close, reload } = await startService(config, signal);
  try {
    const url = await listen(app, config.port, config.host);
    process.stdout.write(bannerText({ ...facts, url }));
    return { url, close, reload };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws as `serve` */
export async function startService(
  config: ServeConfig,
  signal: AbortSignal,
  { connectionReports, crashes }: Pick<ServerConfig, "connectionReports" | "crashes"> = {},
): Promise<Service> {
  const log = createLogger(config.logLevel, process.stderr);
  const servers = mcpServers(config);
  const agentsConfig = readAgents(
    config,
    servers.map(({ id }) => id),
  );
  const choice = chooseModel(config.model, modelsDirectory);

  let app: FastifyInstance | undefined;
  const parts: { close(): Promise<void> }[] = [];
  let isClosing = false;
  const closeAll = async (): Promise<void> => {
    await app?.close();
    isClosing = true;
    await Promise.all(parts.map((part) => part.close()));
  };
  try {
    const keys = new WatchedKeys(config, log);
    parts.push(keys);
    const store = await openStore(config, log);
    if (store !== null) parts.push(store);
    const audit = openAudit(config, log);
    if (audit !== null) parts.push(audit);
    const host =
      servers.length === 0
        ? null
        : await createMcpHost(config, servers, log, config.alias[0] ?? choice.id);
    if (host !== null) parts.push(host);
    const giveUp = (): void => void host?.close();
    signal.addEventListener("abort", giveUp, { once: true });
    const load = (path: string): Promise<Engine> =>
      loadEngine(config, path, signal, longestHoldMs(config, servers, agentsConfig));
    const [engine] = await bothOrNeither(load(choice.path), host?.start());
    // From here on the tools are needed until the last answer has ended.
    signal.removeEventListener("abort", giveUp);
    parts.push(engine);
    logFault(engine, log);

    const embedder = await loadEmbedder(config);
    const toolFormat = config.toolFormat === "auto" ? undefined : config.toolFormat;
    const chat = new Chat(engine, {
      logger: log,
      toolFormat,
      template: config.chatTemplate,
      reasoning: config.reasoning,
      stopsRepetition: config.stopRepetition,
    });
    const said = chatText(chat);
    const level = chat.hasTemplate ? "info" : "warn";
    log[level]({ tool_format: chat.toolFormat }, `${said.subject.toLowerCase()}: ${said.text}`);
    const [id = choice.id, ...aliases] = config.alias;
    const model: ServedModel = {
      id,
      aliases,
      created: modelCreated(choice.path),
      contextSize: engine.cache.cellsPerSequence,
      parallel: config.parallel,
      vocabularySize: engine.model.vocabularySize,
      maxTokens: config.nPredict < 0 ? undefined : config.nPredict,
      toolSection: chat.hasTemplate ? (chat.hasToolSection ? "template" : "generic") : null,
      toolFormat: chat.toolFormat,
    };
    const tools = host === null ? null : await countTools(chat, host, engine.cache, log);
    const agents =
      agentsConfig === null
        ? undefined
        : await loadAgents(agentsConfig, {
            served: { ...model, path: choice.path, chat, sampling: choice.sampling },
            tools: host,
            log,
            load: async (path) => {
              const loaded = await load(path);
              parts.push(loaded);
              return loaded;
            },
          });
    const page = config.uiServer ? readPage(log) : null;
    app = buildServer(
      {
        chat,
        engine,
        embedder,
        tools: host,
        agents: agents?.directory,
        agentEngines: agents?.engines,
        requestedServers: await requestedServers(config, log),
        approvals: new Approvals({ timeoutMs: config.toolTimeout.approval * 1000 }),
        audit,
        store,
        branches: store?.branches,
        model,
      },
      {
        ...serverConfig(config),
        apiKeys: keys.keys,
        tokenSecret: store === null ? undefined : Buffer.from(await store.secret("tokens")),
        sampling: choice.sampling,
        page,
        connectionReports,
        crashes,
        logger: log,
      },
    );
    const facts = {
      modelId: id,
      model: engine.model,
      cache: engine.cache,
      deviceUse: engine.deviceUse,
      chat: said,
      toolTokens: tools,
      systemInfo: loadAddon().systemInfo,
      needsKey: keys.keys.areNeeded,
      generatedKey: config.generatedKey,
      hasPage: page !== null,
      asksPerson: host !== null && config.approval === "ask",
    };
    const engines = [engine, ...(agents?.engines ?? []).map((agent) => agent.engine)];
    return {
      app,
      facts,
      close: closeAll,
      reload: () => {
        void audit?.reopen();
        keys.reload();
      },
      stepAgeMs: () => (isClosing ? 0 : longestStepMs(engines)),
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function serverConfig(config: ServeConfig): Omit<ServerConfig, "sampling" | "apiKeys"> {
  const { processTimeout, toolTimeout, maxToolRounds } = config;
  return {
    version: packageVersion(),
    corsOrigins: config.corsOrigin,
    drainMs: processTimeout.drain * 1000,
    hungStepMs: processTimeout.step * 1000,
    asksPerson: config.approval === "ask",
    maxToolRounds,
    maxToolCalls: maxToolRounds * callsPerRound,
    maxToolSeconds: toolTimeout.answer,
    toolTimeoutMs: toolTimeout.silence * 1000,
    toolTotalTimeoutMs: toolTimeout.call * 1000,
    responsesToolTimeoutMs: toolTimeout.output * 1000,
    responsesEvents: config.responsesEvents,
    responsesTools: config.responsesTools,
    maxBodyBytes: config.maxBody * 2 ** 20,
    maxToolOutputBytes: config.maxToolOutputBytes,
  };
}

/** Of the files that the cache is in: once, nothing fails for it. */
function logFault(engine: Engine, log: ReturnType<typeof createLogger>): void {
  let isLogged = false;
  engine.onStep(() => {
    const { diskFault } = engine.stats();
    if (diskFault === "" || isLogged) return;
    isLogged = true;
    log.warn({ fault: diskFault }, "the context cache does not reach its files");
  });
}

async function loadEmbedder(config: ServeConfig): Promise<ServedEmbedder | undefined> {
  const { embeddingModel: modelPath, threads, pooling } = config;
  if (modelPath === undefined) return undefined;
  const embedder = await Embedder.load({ modelPath, threads, pooling });
  return Object.assign(embedder, { id: basename(modelPath, ".gguf") });
}

function readPage(log: ReturnType<typeof createLogger>): PageFiles | null {
  const page = readPageFiles(pageDirectory);
  if (page === null) log.warn("the web page is not built; npm run setup builds it");
  return page;
}

function longestStepMs(engines: readonly { stats(): Pick<EngineStats, "stepAgeMs"> }[]): number {
  return Math.max(...engines.map((engine) => engine.stats().stepAgeMs));
}

function openAudit(
  { auditLog }: ServeConfig,
  log: ReturnType<typeof createLogger>,
): CallAudit | null {
  if (auditLog === undefined) return null;
  return new CallAudit(auditLog, (error) => log.error({ err: error }, "audit log not written"));
}

async function loadEngine(
  config: ServeConfig,
  modelPath: string,
  signal: AbortSignal,
  holdLeaseMs: number,
): Promise<Engine> {
  const progress = createProgress(process.stderr);
  try {
    return await Engine.load(
      { ...engineOptionsOf(config, modelPath), holdLeaseMs },
      { onProgress: progress.update, signal },
    );
  } finally {
    progress.end();
  }
}

/** A hold outlives whatever it waits for. */
function longestHoldMs(
  { toolTimeout: { silence, call, approval, output } }: ServeConfig,
  servers: readonly McpServerConfig[],
  agents: AgentsConfig | null,
): number {
  const graceSeconds = 60;
  const calls = servers.map(
    ({ timeoutMs = 0, totalTimeoutMs = 0 }) => Math.max(timeoutMs, totalTimeoutMs) / 1000,
  );
  const run = Math.max(silence, call, longestDelegationSeconds(agents), ...calls);
  const longest = Math.max(600, output, approval + run);
  return (longest + graceSeconds) * 1000;
}

/** Loading and connecting go side by side; if one fails, the engine of the other is closed. */
async function bothOrNeither(
  engine: Promise<Engine>,
  mcp: Promise<void> | undefined,
): Promise<[Engine]> {
  const [loaded, connected] = await Promise.allSettled([engine, mcp]);
  if (loaded.status === "fulfilled" && connected.status === "fulfilled") return [loaded.value];
  if (loaded.status === "fulfilled") await loaded.value.close();
  throw loaded.status === "rejected" ? loaded.reason : (connected as PromiseRejectedResult).reason;
}
