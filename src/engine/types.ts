/** What the engine takes and gives: token ids in, text and life-cycle events out. Type-only. */

export interface EngineOptions {
  modelPath: string;
  /** Tokens one sequence may hold. Default: the model's trained context, at most 8192. */
  contextSize?: number | undefined;
  /** Sequences that run at once. Default 4. */
  parallel?: number | undefined;
  /** Slots beyond `parallel` for held and retained sequences. Default: `parallel`. */
  retainedSlots?: number | undefined;
  /** Default: number of physical cores. */
  threads?: number | undefined;
  gpuLayers?: number | undefined;
  kvLayout?: "streams" | "unified" | "auto" | undefined;
  flashAttention?: "on" | "off" | "auto" | undefined;
  cacheTypeK?: KvCacheType | undefined;
  cacheTypeV?: KvCacheType | undefined;
  stepTokenBudget?: number | undefined;
  maxQueue?: number | undefined;
  /** How long a hold waits for resume, in milliseconds. Default 10 minutes. */
  holdLeaseMs?: number | undefined;
  retainBetweenRequests?: boolean | undefined;
  audit?: boolean | undefined;
}

export type KvCacheType = "f32" | "f16" | "bf16" | "q8_0" | "q4_0";

export interface Sampling {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  typicalP: number;
  repeatPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  penaltyLastN: number;
  seed: number;
  logitBias: [token: number, bias: number][];
  /** Standard deviations below the best logit; 0 or undefined: off, here and below. */
  topNSigma?: number | undefined;
  xtcProbability?: number | undefined;
  xtcThreshold?: number | undefined;
  dynatempRange?: number | undefined;
  dynatempExponent?: number | undefined;
  mirostat?: 0 | 1 | 2 | undefined;
  mirostatTau?: number | undefined;
  mirostatEta?: number | undefined;
  /** Candidates that filters leave. */
  minKeep?: number | undefined;
  dry?: DrySampling | undefined;
  /** Scripted sampler: these tokens come out whatever the model says. For tests. */
  script?: Int32Array | undefined;
  /** Behind the script: sample as the other fields say. Default false: end there. */
  samplesAfterScript?: boolean | undefined;
}

/** lark: llguidance's dialect, with `%json`. gbnf: llama.cpp's. */
export interface GrammarSource {
  kind: "lark" | "gbnf";
  text: string;
}

/** Compiled by the engine that it is used with. */
export interface Grammar {
  /** About what it takes in memory. */
  readonly bytes: number;
  readonly compileMicroseconds: number;
  /**
   * Walks tokens through the masks: how many they allow from the first on, and whether that was all
   * and the text may end there. Takes about 0.1 ms a token, on the calling thread.
   */
  check(tokens: Int32Array): {
    accepted: number;
    complete: boolean;
    error: string;
    maskMicroseconds: Float64Array;
  };
}

/** A penalty of multiplier * base ^ (length - allowedLength) for lengthening a repetition. */
export interface DrySampling {
  multiplier: number;
  base: number;
  allowedLength: number;
  penaltyLastN: number;
  sequenceBreakers: string[];
}

/** When the sequence is held for its tool calls. Markers come from the tool-call format. */
export interface PauseTriggers {
  callOpen: string;
  callClose: string;
  holdAtEnd: "never" | "after_call" | "always";
  holdAtTextAfterCall: boolean;
}

export interface GenerateRequest {
  prompt: Int32Array;
  sampling: Sampling;
  /** Undefined: to the end of the context. */
  maxTokens?: number | undefined;
  stop?: string[] | undefined;
  /** Tell the log-probability of each sampled token and of so many of the likeliest, 0 to 20. */
  topLogprobs?: number | undefined;
  pause?: PauseTriggers | undefined;
  /** Keep the cells for the caller's return, in milliseconds after the end. */
  leaseMs?: number | undefined;
  /** What is generated satisfies it from the first token on; then the generation ends. */
  grammar?: Grammar | undefined;
  /** Default true: tokens that the grammar leaves no choice about are not sampled. */
  forcedTokens?: boolean | undefined;
  /** Near `maxTokens`, end the text along a short path that the grammar allows. Default false. */
  closeAtLimit?: boolean | undefined;
  /** Control tokens whose spelling is part of the text, such as the markers of a format. */
  spelledTokens?: Int32Array | undefined;
  signal?: AbortSignal | undefined;
}

/** Counts over the whole life of the sequence, all rounds together. */
export interface EngineUsage {
  promptTokens: number;
  cachedTokens: number;
  resumedTokens: number;
  prefilledTokens: number;
  recomputedTokens: number;
  generatedTokens: number;
}

/** From the logits as the model gave them. Natural logarithms, maybe minus infinity. */
export interface TokenLogprobs {
  token: number;
  logprob: number;
  /** The likeliest tokens, the likeliest first. */
  top: [token: number, logprob: number][];
}

export type GenerationEvent =
  | { type: "progress"; done: number; total: number }
  /** `tokens` were sampled; `text` is valid UTF-8 that may be shown (maybe empty). */
  | {
      type: "text";
      text: string;
      tokens: Int32Array;
      /** If asked for: of `tokens`, but for one that nothing was sampled for. */
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
  /** Of the tokens of the last `extend`, `done` are in the cache. */
  | { type: "extended"; done: number; total: number }
  | {
      type: "finish";
      reason: "end" | "stop_string" | "length" | "cancelled" | "released";
      stopString: string;
      usage: EngineUsage;
    };

export interface ExtendOptions {
  /** From the first after the hold on; at least one. */
  tokens: Int32Array;
  /** As the resume will have it. */
  keepPending: boolean;
}

export interface ResumeOptions {
  tokens: Int32Array;
  /** Keep the sampled token that waits outside the cache before `tokens`. */
  keepPending: boolean;
  maxTokens?: number | undefined;
  /** Begins afresh in this round; null: none. Absent: the held one goes on. */
  grammar?: Grammar | null | undefined;
}

/**
 * One generation. Iterate it once; it ends after `finish` or throws a FermataError. Leaving the loop
 * early cancels it. A consumer that does not read stops the decoding of this sequence only.
 */
export interface Generation extends AsyncIterable<GenerationEvent> {
  readonly id: number;
  /** Prompt, sampled and resumed tokens so far, the pending token included. */
  readonly tokens: readonly number[];
  /** Holds after the next token; a `hold` event with reason `requested` follows. */
  pause(): void;
  /**
   * Tells what the tokens of `resume` will begin with, as far as that is known; it takes the place of
   * what was told before. They are prefilled while the generation is held, when nothing else wants the
   * rows or the cells, and `resume` computes the rest. A wrong guess costs time and changes nothing.
   * Ignored when the generation is not held, and when the tokens do not fit the context.
   * @throws FermataError invalid_value (no token, or none of the vocabulary)
   */
  extend(options: ExtendOptions): void;
  /** @throws FermataError not_held */
  resume(options: ResumeOptions): void;
  /** Ends a held generation; a `finish` event with reason `released` follows. */
  release(): void;
  cancel(): void;
}

/** A token that is recognized by its spelling. */
export interface SpecialToken {
  id: number;
  text: string;
  kind: "control" | "user_defined";
}

export interface ModelInfo {
  description: string;
  architecture: string;
  parameterCount: number;
  sizeBytes: number;
  vocabularySize: number;
  trainedContext: number;
  chatTemplate: string | null;
  /** Spellings; empty when the vocabulary has none. */
  bosToken: string;
  eosToken: string;
  /** The vocabulary wants its beginning token before every prompt. */
  addBos: boolean;
  specialTokens: SpecialToken[];
  isRecurrent: boolean;
}

/** The cache in force. */
export interface CacheInfo {
  layout: "streams" | "unified";
  slots: number;
  /** The longest sequence, prompt and answer together. */
  cellsPerSequence: number;
  cellsTotal: number;
  bytes: number;
}

/** Gauges (first block) and counters since load. */
export interface EngineStats {
  running: number;
  waiting: number;
  held: number;
  slots: number;
  slotsRetained: number;
  cellsUsed: number;
  cellsRetained: number;
  cellsFree: number;

  promptTokens: number;
  cachedTokens: number;
  prefilledTokens: number;
  generatedTokens: number;
  recomputedTokens: number;
  resumedTokens: number;
  /** Of the prefilled ones: while their sequence was held. */
  extendedTokens: number;
  /** Of the extended ones: what came was something else. */
  discardedTokens: number;
  steps: number;
  microBatches: number;
  copies: number;
  evictions: number;
  /** Rows an auditing backend saw; -1 when not audited. */
  auditedRows: number;
}

/** One step of the inference thread, for metrics. */
export interface EngineStep {
  prefillRows: number;
  decodeRows: number;
  microBatches: number;
  copies: number;
  milliseconds: number;
}
