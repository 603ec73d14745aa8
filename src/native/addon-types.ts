/**
 * The addon's surface, mirrored by hand. Nothing else in the project knows it.
 * Native code re-checks every value and throws an Error with a `code`.
 */

import type {
  CacheInfo,
  EngineFaults,
  EngineStats,
  EngineStep,
  EngineUsage,
  ExtendOptions,
  Grammar,
  KvCacheType,
  LlamaOptions,
  ModelInfo,
  PrefixSource,
  ResumeOptions,
  SequenceRequest,
  WaitReason,
} from "./types.ts";

/** Options of {@link NativeAddon.load}. All are required: defaults live in `engine/`. */
export interface NativeLoadOptions {
  modelPath: string;
  /** Tokens a sequence may hold; also the cells a slot has in the streams layout. */
  contextSize: number;
  /** Sequences that run at once. Held sequences do not count. */
  parallel: number;
  /** Slots beyond `parallel`, for held and retained sequences. */
  retainedSlots: number;
  /** Unified layout: cells in the pool. Streams layout: ignored. */
  cellsTotal: number;
  /** Host memory for what leaves its slot; 0: none. */
  cacheRamBytes: number;
  /** Files for what memory has no room for, and that outlive the process; 0: none. */
  cacheDiskBytes: number;
  /** Of these files; of one engine at a time. Empty if there are none. */
  cacheDir: string;
  /** Where they are instead, shared with other processes. */
  cacheRemote?: NativeRedisAddress | undefined;
  threads: number;
  /** Fewer threads while other processes use the cores. */
  adaptThreads: boolean;
  gpuLayers: number;
  llama: LlamaOptions;
  kvLayout: "streams" | "unified";
  flashAttention: "on" | "off" | "auto";
  cacheTypeK: KvCacheType;
  cacheTypeV: KvCacheType;
  /** Decode calls hold rows of one sequence, cut by position alone. Needs the streams layout. */
  deterministic: boolean;
  /** Drafted tokens of a sequence in a step; 0: none. */
  draftLimit: number;
  /** Also where they may change bits of the logits, or take memory for states of recurrent layers. */
  draftsAnywhere: boolean;
  /** That proposes drafts, of the same vocabulary. */
  draftModel?: NativeDraftModelOptions | undefined;
  /** The model's own MTP layers propose them. */
  draftMtp?: boolean | undefined;
  /** Rows a step may carry; prefill chunks fill what decode rows leave. */
  stepTokenBudget: number;
  /** Milliseconds that a step with decode rows should take: bounds its prefill rows; 0: no limit. */
  targetItlMs: number;
  /** The target is nobody's wish: steps take less or more where that serves all (native/core/prefill_budget.h). */
  elasticTarget: boolean;
  /** Rows per pass over the weights. */
  microBatch: number;
  /** A hold that is neither resumed nor released for so long fails with `lease_expired`. */
  holdLeaseMs: number;
  /** Requests that may wait; one more is refused with `queue_full`. */
  maxQueue: number;
  /** Count rows and check cache integrity when idle; for tests and bug reports. */
  audit: boolean;
}

export interface NativeDraftModelOptions {
  modelPath: string;
  gpuLayers: number;
  /** Tokens of a text that it reads, at most those of a sequence; longer ones have no drafts of it. */
  contextSize: number;
}

/** Of Redis or Valkey. */
export interface NativeRedisAddress {
  host: string;
  port: number;
  /** Empty, as the password: none. */
  user: string;
  password: string;
  database: number;
}

export interface NativeAddon {
  /** llama.cpp's version and the CPU features the build uses, one line. */
  readonly systemInfo: string;
  /** What it was compiled to compute on beside the processor; `cpu`: nothing. */
  readonly backend: NativeBackend;
  /** Why there are no devices, in llama.cpp's words; "" if it does not say. */
  readonly deviceProblem: string;
  /**
   * Loads on a thread of its own. `onBatch` is called on the JavaScript thread, once per step at most.
   * Options out of range throw `invalid_argument` at once.
   */
  load(
    options: NativeLoadOptions,
    onBatch: (batch: NativeBatch) => void,
    onLoadProgress?: (fraction: number) => void,
  ): NativeLoad;
  /**
   * Loads a model that turns texts into vectors. All its work is done on libuv's pool; it is freed when
   * nothing refers to it. Rejects with code `model_load_failed` | `out_of_memory` | `no_threads` |
   * `invalid_argument` (it gives no embeddings).
   */
  loadEmbedder(options: NativeEmbedderOptions): Promise<NativeEmbedder>;
  /**
   * What the engine would take with each of these context sizes, of which `options` has one. Reads the
   * file's metadata and no weight, on libuv's pool. A damaged file may end the process: `probe` it before.
   * Rejects with code `model_load_failed` | `invalid_argument`.
   */
  measure(options: NativeLoadOptions, contextSizes: number[]): Promise<NativeMemoryNeeds[]>;
  /** That may have layers; the processor is none. */
  devices(): NativeDevice[];
  /**
   * Makes the devices of the RPC server at `HOST:PORT` known, as RPC0 and so on, for the life of the process;
   * nothing if they are. The process ends when the server is lost, or does not answer for `timeoutSeconds`
   * (0: no limit). Rejects within seconds with code `unreachable` | `invalid_argument`.
   */
  addRpcServer(endpoint: string, timeoutSeconds: number): Promise<void>;
  /**
   * Serves this machine's devices to others on the calling thread, and never returns.
   * @throws code `invalid_argument`: it cannot listen
   */
  runRpcServer(options: NativeRpcServerOptions): never;
  /** Gives the system what was freed and the C library keeps, on libuv's pool. Does nothing where it is not glibc. */
  giveBackMemory(): Promise<void>;
  /**
   * Loads everything but the weights' data and frees it again, on the calling thread. A damaged file
   * may end the process here: run it in a child process.
   * @throws code `model_load_failed` | `out_of_memory`
   */
  probe(modelPath: string, mtpLayers?: boolean): void;
}

export type NativeBackend = "cpu" | "cuda" | "metal" | "vulkan";

/** Bytes. */
export interface NativeMemoryParts {
  weights: number;
  /** Keys and values of all cells, states of recurrent layers. */
  cache: number;
  /** Activations, attention scores, logits. */
  compute: number;
}

export interface NativeMemoryNeeds {
  host: NativeMemoryParts;
  devices: (NativeMemoryParts & { name: string })[];
}

export interface NativeDevice {
  name: string;
  description: string;
  /** 0: it does not say. */
  freeBytes: number;
  totalBytes: number;
}

export interface NativeRpcServerOptions {
  /** An IPv4 address. */
  host: string;
  port: number;
  threads: number;
  /** Of the processor's memory, that clients may have. */
  memoryBytes: number;
}

export interface NativeEmbedderOptions {
  modelPath: string;
  /** Of one text. */
  maxTokens: number;
  threads: number;
  gpuLayers: number;
  /** "": as the file says. */
  pooling: EmbeddingPooling | "";
  /** Its file has the weights of a classifier: it gives scores of pairs in the place of vectors. */
  ranks: boolean;
}

export type EmbeddingPooling = "mean" | "cls" | "last";

export interface NativeEmbedder {
  readonly dimensions: number;
  readonly maxTokens: number;
  readonly vocabularySize: number;
  /** With the tokens the model wants around a text; special tokens in it are plain text. */
  tokenize(texts: string[]): Promise<Int32Array[]>;
  /** Each document with the query, as a model that ranks reads them; special tokens in them are plain text. */
  tokenizePairs(query: string, documents: string[]): Promise<Int32Array[]>;
  /** Vectors of length 1, or the scores of a model that ranks. 1 to `maxTokens` tokens each, else code `invalid_argument`. */
  embed(tokens: Int32Array[]): Promise<Float32Array[]>;
}

export interface NativeLoad {
  /** Rejects with code `model_load_failed` | `out_of_memory` | `no_threads` | `closed` (it was cancelled). */
  readonly engine: Promise<NativeEngine>;
  /**
   * Gives the load up: `engine` rejects with `closed` once everything is freed. Ignored when it is
   * over.
   */
  cancel(): void;
}

export interface NativeEngine {
  readonly model: ModelInfo;
  readonly cache: CacheInfo;
  /**
   * Tokenizes off the JavaScript thread. A special token is recognized where it is spelled, unless
   * its spelling contains a guard character; guards are removed. Pass "" when nothing is guarded.
   * `addBos` adds the vocabulary's beginning token if it has one and the text does not start with it.
   */
  tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array>;
  /** Bytes of the tokens; control tokens are spelled when `special`. */
  detokenize(tokens: Int32Array, special: boolean): Uint8Array;
  /**
   * Compiles on a worker thread, in bounded time. Lark is llguidance's dialect (with `%json`); GBNF is
   * llama.cpp's. Rejects with code `grammar_invalid` (the message says where and why) |
   * `grammar_too_large` | `closed`.
   */
  compileGrammar(kind: NativeGrammarKind, text: string): Promise<Grammar>;
  /** @throws code `queue_full` | `closed` | `invalid_argument` */
  submit(request: NativeSubmit): void;
  /** Holds a decoding sequence after its next token. Unknown, held and finished ids are ignored. */
  pause(id: number): void;
  /**
   * Prefills a held sequence with what its resume will begin with, as far as that is known; running
   * sequences go first. Takes the place of the request before it. A wrong guess costs rows only.
   * Ignored when the sequence is not held.
   * @throws code `closed` | `invalid_argument`
   */
  extend(request: NativeExtend): void;
  /** @throws code `not_held` | `closed` | `invalid_argument` */
  resume(request: NativeResume): void;
  /** Ends a held sequence as `released`; its cells stay retained. Unknown ids are ignored. */
  release(id: number): void;
  /** Takes effect at the next chunk boundary. Unknown ids are ignored. */
  cancel(id: number): void;
  /** The consumer took `count` generated tokens. */
  acknowledge(id: number, count: number): void;
  stats(): EngineStats & EngineFaults;
  /** "" when sound. Runs between steps. */
  checkIntegrity(): Promise<string>;
  /** Idempotent. Running sequences fail with `closed`; resolves when the thread has ended and memory is freed. */
  close(): Promise<void>;
}

export type NativeGrammarKind = "lark" | "gbnf";

export interface NativeSubmit extends SequenceRequest {
  /** Larger than every id before it in this engine. */
  id: number;
  /** Generated tokens that may wait unacknowledged. */
  window: number;
  /** Keep the cells for later requests when it finished. */
  retain: boolean;
}

export interface NativeExtend extends ExtendOptions {
  id: number;
}

export interface NativeResume extends ResumeOptions {
  id: number;
}

export type NativeFailCode =
  | "context_length"
  | "lease_expired"
  | "decode_failed"
  | "out_of_cells"
  | "grammar_failed"
  | "closed"
  | "internal";

/** From the raw logits; natural logarithms, maybe minus infinity. */
export interface NativeLogprobs {
  logprob: number;
  /** The likeliest tokens, the likeliest first. */
  top: [token: number, logprob: number][];
}

export type NativeEvent =
  /**
   * It cannot run yet, or not any more. Comes again when the reason changes. `behind`: the sequence that it waits for; 0: no
   * single one. `ago`: how many milliseconds before the batch its step began; so below.
   */
  | { kind: "waiting"; id: number; reason: WaitReason; behind: number; ago: number }
  /** It runs: `reused` positions are in the cache, and `total` are prefilled now. */
  | {
      kind: "admitted";
      id: number;
      reused: number;
      source: PrefixSource;
      total: number;
      ago: number;
    }
  | {
      kind: "tokens";
      id: number;
      tokens: Int32Array;
      text: Uint8Array;
      /** When its step ended, in milliseconds of a clock that only goes forward. */
      at: number;
      /** If asked for: of the tokens that were sampled. */
      logprobs?: NativeLogprobs[];
    }
  | { kind: "progress"; id: number; done: number; total: number }
  /** If asked for: of the prompt, from position `from` on. */
  | { kind: "prompt_logprobs"; id: number; from: number; logprobs: NativeLogprobs[] }
  | { kind: "tool_call_ready"; id: number; callIndex: number }
  | {
      kind: "tool_call_pause";
      id: number;
      reason: "end_token" | "text_after_call" | "requested";
      text: Uint8Array;
      /** A sampled token waits outside the cache; `resume` keeps or drops it. */
      pendingToken: boolean;
      usage: EngineUsage;
    }
  /** Of the tokens that extend a held sequence, `done` are in the cache. */
  | { kind: "extended"; id: number; done: number; total: number }
  | {
      kind: "finished";
      id: number;
      reason: "end" | "stop_string" | "length" | "cancelled" | "released";
      text: Uint8Array;
      stopString: string;
      /** The token of the request that ended it, if one did. */
      stopToken?: number;
      usage: EngineUsage;
    }
  | { kind: "failed"; id: number; code: NativeFailCode; message: string; usage: EngineUsage };

export interface NativeBatch {
  events: NativeEvent[];
  steps: EngineStep[];
}
