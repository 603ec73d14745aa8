/** Requests to the engine (token ids) and its events (text and states). Type-only. */

import type {
  CacheInfo as NativeCacheInfo,
  EngineUsage,
  ExtendOptions,
  KvCacheType,
  LlamaOptions,
  PrefixSource,
  ResumeOptions,
  SequenceRequest,
  WaitReason,
} from "../native/types.ts";

export type * from "../native/types.ts";

/** The cache in force. */
export interface CacheInfo extends NativeCacheInfo {
  /** Other engines find what this one has written (`cacheRemote`). */
  isShared: boolean;
}

export interface EngineOptions {
  modelPath: string;
  /** Tokens one sequence may hold. Default: the model's trained context, or what a quarter of the free memory holds, if that is less and at least 8192. */
  contextSize?: number | undefined;
  /** Sequences that run at once. Default 4. */
  parallel?: number | undefined;
  /** Slots beyond `parallel` for held and retained sequences. Default: `parallel`. */
  retainedSlots?: number | undefined;
  /**
   * MiB of host memory for sequences that leave their slots; 0: none. Default: a quarter of the memory
   * that the weights and the slots leave, 8192 at most.
   */
  cacheRam?: number | undefined;
  /** MiB of files for what memory has no room for, and that outlive the process. Default 0: none. */
  cacheDisk?: number | undefined;
  /** Where they are; a folder in it is of this model file. */
  cacheDir?: string | undefined;
  /** Where they are instead of a folder: Redis or Valkey, `redis://[user:password@]host[:port][/database]`, shared with engines of the same model and options. */
  cacheRemote?: string | undefined;
  /** Default: the physical cores, fewer while other processes use them. The number changes no result. */
  threads?: number | undefined;
  /** -1: all. Default: as many as fit on the devices of the build. */
  gpuLayers?: number | undefined;
  llama?: LlamaOptions | undefined;
  kvLayout?: "streams" | "unified" | "auto" | undefined;
  flashAttention?: "on" | "off" | "auto" | undefined;
  cacheTypeK?: KvCacheType | undefined;
  cacheTypeV?: KvCacheType | undefined;
  /** Tokens do not depend on what else runs or is cached. Needs the streams layout. Default false. */
  deterministic?: boolean | undefined;
  /**
   * Tokens that a sequence has said or read before are tried several at a time, where that is faster.
   * The tokens of an answer are the same, as far as the logits of several rows have the bits of one row's. Default: where they have
   * (weights of quantized types on x86 processors, flash-attention, the streams layout) and no states of recurrent layers must be
   * kept, and with `draftModel` and `draftMtp`. A deterministic engine has none.
   */
  drafts?: boolean | undefined;
  /**
   * Path of a smaller model of the same vocabulary, which says how an answer may go on where its own text does not;
   * `drafts` is on then. Its layers go where the model's do.
   */
  draftModel?: string | undefined;
  /** The model's own MTP layers say how an answer may go on, in place of a `draftModel`; `drafts` is on then. Default false. */
  draftMtp?: boolean | undefined;
  /** Rows of a step. Default 512. */
  stepTokenBudget?: number | undefined;
  /** Rows of a pass over the weights, at most those of a step. Default 512. */
  microBatch?: number | undefined;
  /**
   * Milliseconds that a running sequence should wait for its next token while the prompts of others are
   * computed; 0: no limit. Default: 34, or eleven times what a step without prompts takes, at most 250,
   * or twice that step if it is more; the rest of a prompt may take a second (native/core/prefill_budget.h).
   */
  targetItlMs?: number | undefined;
  maxQueue?: number | undefined;
  /** How long a hold waits for resume, in milliseconds. Default 10 minutes. */
  holdLeaseMs?: number | undefined;
  retainBetweenRequests?: boolean | undefined;
  /** Cells are shared by all owners. Default false. */
  ownersShareCache?: boolean | undefined;
  audit?: boolean | undefined;
}

/** lark: llguidance's dialect, with `%json`. gbnf: llama.cpp's. */
export interface GrammarSource {
  kind: "lark" | "gbnf";
  text: string;
}

export interface GenerateRequest extends SequenceRequest {
  /** Cells are shared with generations of the same owner and the same cache salt alone. */
  owner?: string | undefined;
  /** Whose requests wait for each other, so that many of one do not keep another's waiting. Default: the owner. */
  client?: string | undefined;
  cacheSalt?: string | undefined;
  /** Cancels the generation. */
  signal?: AbortSignal | undefined;
  /** Called before the first token, with the prompt's, in order: see `promptLogprobs`. */
  onPromptLogprobs?: ((logprobs: TokenLogprobs[]) => void) | undefined;
  watch?: SequenceWatch | undefined;
}

/** Called when a generation is made; returns who is told what becomes of it. @param agent of whom; default: of the answer itself */
export type SequenceWatch = (agent?: string) => SequenceWatcher;

export type SequenceWatcher = (event: SequenceEvent) => void;

/** What becomes of a sequence, without its tokens: now, or `ago` milliseconds before. */
export type SequenceEvent =
  | { type: "submitted" }
  /** `turn`: others of its client are in the engine's queue. `behind`: who is told of the sequence that it waits for, if it is a single one. */
  | {
      type: "waiting";
      reason: WaitReason | "turn";
      behind: SequenceWatcher | null;
      ago: number;
    }
  /** `reused` positions are in the cache, and `total` are prefilled now. */
  | { type: "admitted"; reused: number; source: PrefixSource; total: number; ago: number }
  /** The prefill is over: the first token was sampled. */
  | { type: "decode" }
  | { type: "hold"; usage: EngineUsage }
  /** While it is held, `done` tokens of the coming resume are in the cache. */
  | { type: "extended"; done: number }
  | { type: "resume" }
  /** `usage`: null if the engine closed, or it was never submitted. */
  | { type: "end"; reason: SequenceEnd; usage: EngineUsage | null };

export type SequenceEnd = "end" | "stop_string" | "length" | "cancelled" | "released" | "failed";

/** Natural logarithms from the model's own logits; may be minus infinity. */
export interface TokenLogprobs {
  token: number;
  logprob: number;
  /** The likeliest tokens, the likeliest first. */
  top: [token: number, logprob: number][];
}

export type GenerationEvent =
  /** `done` of `total` tokens have been read; `cached` tokens before them were found in the cache. */
  | { type: "progress"; done: number; total: number; cached: number }
  /** `tokens` were sampled. `text` is valid UTF-8 and may be empty. */
  | {
      type: "text";
      text: string;
      tokens: Int32Array;
      /** If requested: those of `tokens`. A token that was not sampled has none. */
      logprobs?: TokenLogprobs[];
    }
  | { type: "tool-call-ready"; callIndex: number }
  /** The sequence is held until `resume` or `release`; iteration waits. */
  | {
      type: "hold";
      reason: "end_token" | "text_after_call" | "requested";
      pendingToken: boolean;
      usage: EngineUsage;
    }
  /** `done` tokens of the last `extend` are in the cache. */
  | { type: "extended"; done: number; total: number }
  | {
      type: "finish";
      reason: "end" | "stop_string" | "length" | "cancelled" | "released";
      stopString: string;
      /** With the reason `stop_string`: the token of the request that ended it. */
      stopToken?: number;
      usage: EngineUsage;
    };

/**
 * One generation. Iterate it once; it ends after `finish` or throws a FermataError. Leaving the loop
 * early cancels it. A consumer that does not read stops the decoding of this sequence only.
 */
export interface Generation extends AsyncIterable<GenerationEvent> {
  /** The addon's; 0: it was not submitted yet. */
  readonly id: number;
  /** Prompt, sampled and resumed tokens so far, the pending token included. */
  readonly tokens: readonly number[];
  /** Holds after the next token; a `hold` event with reason `requested` follows. */
  pause(): void;
  /**
   * Gives the known beginning of the tokens of `resume`, and replaces what an earlier call gave. While the generation is
   * held, the engine prefills them when nothing else needs the rows or the cells; `resume` computes the rest. A wrong
   * guess costs time and changes no token. Ignored when the generation is not held, or the tokens do not fit the context.
   * @throws FermataError invalid_value (no token, or none of the vocabulary)
   */
  extend(options: ExtendOptions): void;
  /** @throws FermataError not_held */
  resume(options: ResumeOptions): void;
  /** Ends a held generation; a `finish` event with reason `released` follows. */
  release(): void;
  cancel(): void;
}
