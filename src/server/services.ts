/** The parts that the server is built from. Interfaces, so that tests can replace the engine. Type-only. */

import type { ApiKeys } from "./http/api-keys.ts";
import type { FastifyBaseLogger } from "fastify";
import type { AgentDirectory } from "../agents/agent-directory.ts";
import type {
  ChatCounters,
  ChatGeneration,
  ChatModel,
  ChatRequest,
  PromptRequest,
} from "../chat/types.ts";
import type { Embedder } from "../engine/embedder.ts";
import type { Reranker } from "../engine/reranker.ts";
import type { Engine } from "../engine/engine.ts";
import type { EngineStats, EngineStep, ModelInfo, Sampling } from "../engine/types.ts";
import type { PageFiles } from "./about/page.ts";
import type { ConnectionReports } from "./http/connection-reports.ts";
import type { Crashes } from "./http/quarantine.ts";
import type { BranchStore, OpenStore } from "../store/types.ts";
import type { ServerConnector, ToolProvider } from "../tools/types.ts";
import type { ModelPool } from "../models/model-pool.ts";
import type { ModelFile } from "../models/types.ts";
import type { Approvals } from "../tools/approvals.ts";
import type { CallAudit } from "../tools/call-audit.ts";

export interface ServedModel {
  /** The model's name in answers: its first alias, else its file name without `.gguf`. */
  id: string;
  /** Unix seconds. */
  created: number;
  contextSize: number;
  /** Sequences that run at once. */
  parallel: number;
  vocabularySize: number;
  /** More names for the model in requests. */
  aliases?: readonly string[] | undefined;
  /** Token limit of an answer whose request sets none. Default: to the end of the context. */
  maxTokens?: number | undefined;
  /** Where the model reads its tools: in its template, or in a generic prompt. Null: no template, so it cannot chat. */
  toolSection?: "template" | "generic" | null;
  /** The format in which the model writes calls. */
  toolFormat?: string;
}

/** A model in memory, and what its requests need. */
export interface LoadedModel extends Pick<ServerServices, "chat" | "engine" | "model"> {
  sampling: ServerConfig["sampling"];
}

export interface ServedEmbedder extends Pick<
  Embedder,
  "dimensions" | "maxTokens" | "vocabularySize" | "embed"
> {
  /** File name without `.gguf`. */
  id: string;
  /** For lists; undefined: it is in none. */
  file?: Pick<ModelFile, "bytes" | "created" | "describe"> | undefined;
}

export interface ServedReranker extends Pick<Reranker, "rank"> {
  /** File name without `.gguf`. */
  id: string;
}

export interface AgentEngine {
  /** File name without `.gguf`. */
  model: string;
  engine: Pick<ServerServices["engine"], "stats" | "onStep" | "onTokenInterval">;
  chat: Pick<ServerServices["chat"], "counters" | "turnMemory">;
}

/** What no client is told, and no metric. */
type UnpublishedModel = "vocabularySize" | "chatTemplate" | "isRecurrent";
type UnpublishedStats =
  | "slots"
  | "slotsRetained"
  | "ramMovedBytes"
  | "steps"
  | "microBatches"
  | "copies"
  | "evictions"
  | "auditedRows";

export interface ServerServices {
  chat: {
    generate(request: ChatRequest): ChatGeneration;
    /** Tokens of the prompt as `generate` would submit it. */
    countPromptTokens(request: PromptRequest, options?: { mayExceed?: boolean }): Promise<number>;
    /** The prompt as `generate` would render it, special tokens spelled. */
    promptText(request: Omit<PromptRequest, "owner">): Promise<string>;
    /** The text with guards, so that no special token is recognized in it. */
    guardText(text: string): { text: string; guard: string };
    readonly counters: Readonly<ChatCounters>;
    /** Bytes of the tokens of earlier turns. */
    readonly turnMemory: Readonly<{ used: number; limit: number }>;
    /** Jinja text; null: there is none. */
    readonly templateSource: string | null;
    /** The template can switch thinking on or off. */
    readonly mayThink: boolean;
    /** A turn may have several calls. */
    readonly takesSeveralCalls: boolean;
  };
  engine: {
    stats(): Omit<EngineStats, UnpublishedStats>;
    onStep(listener: (step: EngineStep) => void): unknown;
    onTokenInterval(listener: (milliseconds: number) => void): unknown;
    readonly model: Omit<ModelInfo, UnpublishedModel | "specialTokens"> &
      Pick<ChatModel, "specialTokens">;
  } & Pick<Engine, "tokenize" | "detokenize" | "tokenBytes" | "generate" | "compileGrammar">;
  /** Undefined: no embedding model is loaded. */
  embedder?: ServedEmbedder | undefined;
  /** Undefined: no model that ranks is loaded. */
  reranker?: ServedReranker | undefined;
  /** Null: no MCP server is configured. */
  tools: ToolProvider | null;
  /** Undefined: requests may not name MCP servers of their own. */
  requestedServers?: ServerConnector | undefined;
  /** Undefined: no agents are configured. */
  agents?: Pick<AgentDirectory, "supervisor" | "names" | "find"> | undefined;
  /** Engines of agents that have a model of their own, for the metrics. */
  agentEngines?: readonly AgentEngine[] | undefined;
  /** Calls that a person must approve. */
  approvals: Approvals;
  /** Null: calls are not recorded. */
  audit: Pick<CallAudit, "started" | "ended" | "lostLines"> | null;
  /** Null: responses are not kept. */
  store: OpenStore | null;
  /** The store of /api/conversations. Default: in memory. */
  branches?: BranchStore | undefined;
  /** The default; it may leave memory where `models` are served. */
  model: ServedModel;
  /** A folder of models, the default among them. Undefined: one model, which stays. */
  models?:
    | Pick<
        ModelPool<LoadedModel>,
        "list" | "loaded" | "has" | "take" | "keep" | "unload" | "onLoad"
      >
    | undefined;
}

export interface ServerConfig {
  /** A list without limits, or keys that change. Empty: anyone may call. */
  apiKeys: readonly string[] | ApiKeys;
  /** 32 bytes that seal sessions and stream tokens. Default: random bytes, so these end with the server. */
  tokenSecret?: Buffer | undefined;
  /** Origins of the web pages that may call; `*` for all. Default: none. */
  corsOrigins?: readonly string[];
  /** How long running requests may go on once the server closes. Default 0. */
  drainMs?: number;
  /** Before that: requests are still served, but GET /ready says 503. Default 0. */
  noticeMs?: number;
  /** The name of this process among several behind a proxy. Default: none. */
  replica?: string | undefined;
  /** The model's default sampling. A seed is drawn for each request. */
  sampling: Omit<Sampling, "seed" | "logitBias" | "script">;
  maxToolRounds?: number | undefined;
  /** Limit of one answer. */
  maxToolCalls?: number | undefined;
  maxToolSeconds?: number | undefined;
  /** How long a call may be silent. */
  toolTimeoutMs?: number | undefined;
  /** How long a call may take in all. */
  toolTotalTimeoutMs?: number | undefined;
  /** A step of the inference thread that takes longer hangs. Default ten minutes. */
  hungStepMs?: number | undefined;
  /** In conversations a person is asked about tools that are not read-only and have no policy. Default: no. */
  asksPerson?: boolean | undefined;
  /** Default: OpenAI's events alone. */
  responsesEvents?: "standard" | "extended" | undefined;
  /** Default: a response ends with the calls of the client's functions. */
  responsesTools?: "close" | "held" | undefined;
  /** How long a held response waits for an output. Default 300 s. */
  responsesToolTimeoutMs?: number | undefined;
  /** Limit of one posted output. Default 1 MiB. */
  maxToolOutputBytes?: number | undefined;
  /** Silence after which a stream gets an SSE comment. Default 15 s. */
  keepAliveMs?: number | undefined;
  /** A client that reads nothing for this long is disconnected. Default five minutes. */
  stalledMs?: number | undefined;
  /** The same while requests wait for a place. Default 20 s. */
  crowdedStalledMs?: number | undefined;
  /** Clients that may be connected at once. Default 2048. */
  maxConnections?: number | undefined;
  /** Of this program, for MCP clients. Default: 0. */
  version?: string | undefined;
  /** The web page, served at `/`. Default: none. */
  page?: PageFiles | null | undefined;
  /** Receives the state of each connection. */
  connectionReports?: ConnectionReports | undefined;
  /** Of earlier processes. Bodies that are answered leave it. */
  crashes?: Crashes | undefined;
  /** Of one body, where a route needs no more. Default 4 MiB. */
  maxBodyBytes?: number | undefined;
  /** Of all bodies that are on their way. Default 128 MiB. */
  unfinishedBodyBytes?: number | undefined;
  logger?: FastifyBaseLogger | undefined;
}
