/** The composition root: configuration in, a service out, listening or not. */

import { basename } from "node:path";
import type { FastifyInstance } from "fastify";
import type { McpServerConfig } from "../mcp/settings.ts";
import type { AgentsConfig } from "../agents/agents-config.ts";
import { Embedder } from "../engine/embedder.ts";
import { Reranker } from "../engine/reranker.ts";
import type { Engine } from "../engine/engine.ts";
import { missingDevice } from "../engine/missing-device.ts";
import type { EngineStats, CacheInfo } from "../engine/types.ts";
import { Approvals } from "../tools/approvals.ts";
import { CallAudit } from "../tools/call-audit.ts";
import { loadAddon } from "../native/addon.ts";
import { buildServer } from "../server/app.ts";
import { type PageFiles, readPageFiles } from "../server/about/page.ts";
import type { ServedEmbedder, ServedReranker, ServerConfig } from "../server/services.ts";
import { WatchedKeys } from "./keys-file.ts";
import { type BannerFacts, bannerText } from "./banner.ts";
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
import { boundHeap, GivesMemoryBack } from "./memory.ts";
import { loadModel, loadWithProgress, openPool, type OwnModel } from "./load-models.ts";
import { modelName } from "./model-files.ts";
import { defaultModel, modelFile, modelsFolderOf } from "./models-folder.ts";
import type { ServeConfig } from "./options/serve-options.ts";
import { packageVersion, pageDirectory } from "./folders.ts";
import { assertPortFree, listen } from "./port.ts";
import type { Logger } from "pino";
import type { Chat } from "../chat/chat.ts";
import { tokensByServer, type ToolTokens, toolTokens } from "../server/answer/tool-tokens.ts";
import type { ToolProvider } from "../tools/types.ts";

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
  boundHeap();
  const log = createLogger(config.logLevel, process.stderr);
  const servers = mcpServers(config);
  const agentsConfig = readAgents(
    config,
    servers.map(({ id }) => id),
  );
  const folder = modelsFolderOf(config);
  const standard = defaultModel(config, folder);

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
      servers.length === 0 ? null : await createMcpHost(config, servers, log, standard.name);
    if (host !== null) parts.push(host);
    const giveUp = (): void => void host?.close();
    signal.addEventListener("abort", giveUp, { once: true });
    const holdLeaseMs = longestHoldMs(config, servers, agentsConfig);
    const terms = { config, log, signal, holdLeaseMs };
    const pool = folder === null ? undefined : openPool(folder, standard, terms);
    if (pool !== undefined) parts.push(pool);
    let tellStarted = (): void => {};
    const started = new Promise<void>((resolve) => (tellStarted = resolve));
    const load = async (): Promise<OwnModel> => {
      if (pool === undefined)
        return await loadWithProgress((update) => loadModel(standard, true, terms, update));
      const lease = await pool.take(standard.name);
      // It may be pinned below, and its engine is asked until then.
      lease.until(started);
      return lease.model;
    };
    const [loaded] = await bothOrNeither(load(), host?.start());
    // From here on the tools are needed until the last answer has ended.
    signal.removeEventListener("abort", giveUp);
    if (pool === undefined) parts.push(loaded.engine);
    const { engine, chat, model, sampling, said } = loaded;
    parts.push(new GivesMemoryBack(loadAddon()));
    const embedder = await loadEmbedder(config);
    const reranker = await loadReranker(config);
    const share = host === null ? null : await toolShare(chat, host, engine.cache, log);
    if (host?.servers().some(({ state }) => state === "starting"))
      void host.missing().then(() => toolShare(chat, host, engine.cache, log));
    const agents =
      agentsConfig === null
        ? undefined
        : await loadAgents(agentsConfig, {
            served: { ...model, path: standard.path, chat, sampling },
            tools: host,
            log,
            load: async (path) => {
              const own = await loadWithProgress((update) =>
                loadModel(modelFile(path, modelName(path)), false, terms, update),
              );
              parts.push(own.engine);
              return own;
            },
          });
    if (agents !== undefined) pool?.pin(standard.name);
    const page = config.uiServer ? readPage(log) : null;
    app = buildServer(
      {
        chat,
        engine,
        embedder,
        reranker,
        tools: host,
        agents: agents?.directory,
        agentEngines: agents?.engines,
        requestedServers: await requestedServers(config, log),
        approvals: new Approvals({ timeoutMs: config.toolTimeout.approval * 1000 }),
        audit,
        store,
        branches: store?.branches,
        model,
        models: pool,
      },
      {
        ...serverConfig(config),
        apiKeys: keys.keys,
        tokenSecret: store === null ? undefined : Buffer.from(await store.secret("tokens")),
        sampling,
        page,
        connectionReports,
        crashes,
        logger: log,
      },
    );
    const facts = {
      modelId: model.id,
      models: pool === undefined ? null : { count: pool.list().length, most: config.modelsMax },
      model: engine.model,
      cache: engine.cache,
      deviceUse: engine.deviceUse,
      missingDevice: missingDevice(loadAddon()),
      chat: said,
      toolShare: share,
      systemInfo: loadAddon().systemInfo,
      needsKey: keys.keys.areNeeded,
      generatedKey: config.generatedKey,
      hasPage: page !== null,
      asksPerson: host !== null && config.approval === "ask",
    };
    const engines = (): Pick<Engine, "stats">[] => [
      ...(pool?.loaded() ?? [loaded]).map((one) => one.engine),
      ...(agents?.engines ?? []).map((agent) => agent.engine as Engine),
    ];
    tellStarted();
    return {
      app,
      facts,
      close: closeAll,
      reload: () => {
        void audit?.reopen();
        keys.reload();
      },
      stepAgeMs: () => (isClosing ? 0 : longestStepMs(engines())),
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
    noticeMs: processTimeout.notice * 1000,
    drainMs: processTimeout.drain * 1000,
    replica: config.replica,
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

async function loadEmbedder(config: ServeConfig): Promise<ServedEmbedder | undefined> {
  const { embeddingModel: modelPath, threads, pooling } = config;
  if (modelPath === undefined) return undefined;
  const embedder = await Embedder.load({ modelPath, threads, pooling });
  const id = basename(modelPath, ".gguf");
  return Object.assign(embedder, { id, file: modelFile(modelPath, id) });
}

async function loadReranker(config: ServeConfig): Promise<ServedReranker | undefined> {
  const { rerankModel: modelPath, threads } = config;
  if (modelPath === undefined) return undefined;
  const reranker = await Reranker.load({ modelPath, threads });
  return Object.assign(reranker, { id: basename(modelPath, ".gguf") });
}

function readPage(log: ReturnType<typeof createLogger>): PageFiles | null {
  const page = readPageFiles(pageDirectory);
  if (page === null) log.warn("the web page is not built; npm run setup builds it");
  return page;
}

function longestStepMs(engines: readonly { stats(): Pick<EngineStats, "stepAgeMs"> }[]): number {
  return Math.max(0, ...engines.map((engine) => engine.stats().stepAgeMs));
}

function openAudit(
  { auditLog }: ServeConfig,
  log: ReturnType<typeof createLogger>,
): CallAudit | null {
  if (auditLog === undefined) return null;
  return new CallAudit(auditLog, (error) => log.error({ err: error }, "audit log not written"));
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
  model: Promise<OwnModel>,
  mcp: Promise<void> | undefined,
): Promise<[OwnModel]> {
  const [loaded, connected] = await Promise.allSettled([model, mcp]);
  if (loaded.status === "fulfilled" && connected.status === "fulfilled") return [loaded.value];
  if (loaded.status === "fulfilled") await loaded.value.engine.close();
  throw loaded.status === "rejected" ? loaded.reason : (connected as PromiseRejectedResult).reason;
}

/** What the tools take of the prompt. Logs and returns it; null: there are no tools, or the template cannot say. */
async function toolShare(
  chat: Pick<Chat, "countPromptTokens">,
  host: Pick<ToolProvider, "tools">,
  { cellsPerSequence: context }: CacheInfo,
  log: Logger,
): Promise<string | null> {
  const tokens = await toolTokens(chat, host.tools());
  if (tokens === null || tokens.total === 0) return null;
  const details = { tokens: tokens.total, context, servers: tokens.byServer };
  const text = `the tools take ${tokens.total} of ${context} tokens (${tokensByServer(tokens)})`;
  if (!takesMost(tokens, context)) {
    log.info(details, "tokens of the tools");
    return text;
  }
  const advice =
    'choose fewer with "tools": {"allow": […]} in the MCP configuration, or take a larger --ctx-size';
  log.warn(details, `the tools take most of the context: ${advice}`);
  return `${text}; ${advice}`;
}

/** Little room is left for a conversation. */
function takesMost({ total }: ToolTokens, contextSize: number): boolean {
  return total > contextSize / 2;
}
