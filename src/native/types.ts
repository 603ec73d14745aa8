/**
 * What callers of the engine and the addon both know, as it crosses between JavaScript and C++.
 * Ranges and defaults stand in `native/core/request.h`; `native/binding/requests.cpp` checks them.
 * Type-only.
 */

export type KvCacheType =
  | "f32"
  | "f16"
  | "bf16"
  | "q8_0"
  | "q4_0"
  | "q4_1"
  | "iq4_nl"
  | "q5_0"
  | "q5_1";

/** llama.cpp's own options. What is left out is as llama.cpp or the model's file say. */
export interface LlamaOptions {
  /** Servers as `HOST:PORT` whose devices join those of this machine, for every engine of the process from then on. */
  rpcServers?: string[] | undefined;
  /** Seconds that one answer of such a server may take before the process ends; 0: no limit. Default 600. */
  rpcTimeout?: number | undefined;
  /** Names of the devices that layers may go to; `["none"]`: to none. */
  devices?: string[] | undefined;
  splitMode?: "none" | "layer" | "row" | "tensor" | undefined;
  /** Shares of the devices. */
  tensorSplit?: number[] | undefined;
  /** Index of the device that has all with `splitMode: "none"`. */
  mainGpu?: number | undefined;
  /** Buffer types for tensors, by a regular expression of their names; the first that matches counts. */
  overrideTensor?: { pattern: string; buffer: string }[] | undefined;
  /** Default true: the file is mapped, where the devices allow it. */
  mmap?: boolean | undefined;
  /** Keep the weights from being swapped. Default false. */
  mlock?: boolean | undefined;
  ropeScaling?: "none" | "linear" | "yarn" | undefined;
  ropeFreqBase?: number | undefined;
  ropeFreqScale?: number | undefined;
  yarnOrigCtx?: number | undefined;
  yarnExtFactor?: number | undefined;
  yarnAttnFactor?: number | undefined;
  yarnBetaFast?: number | undefined;
  yarnBetaSlow?: number | undefined;
}

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
  /** A bias of -100 or less bans the token. */
  logitBias: [token: number, bias: number][];
  /** The same of the tokens of a text: `withTextBias` looks them up. */
  textBias?: [text: string, bias: number][] | undefined;
  /** No end token is sampled: only a limit, a stop string or a grammar ends the text. Default false. */
  ignoresEnd?: boolean | undefined;
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
  rules?: TokenRules | undefined;
  /** Scripted sampler: these tokens come out whatever the model says. For tests. */
  script?: Int32Array | undefined;
  /** Behind the script: sample as the other fields say. Default false: end there. */
  samplesAfterScript?: boolean | undefined;
  /** The prompt ends as the resume of a round that an earlier process held: what is drawn is what it would have drawn. */
  goesOn?: boolean | undefined;
}

/** Which tokens may be sampled, and which end the text, beside a grammar and the end tokens of the model. */
export interface TokenRules {
  /** Of these alone. Default: of all. */
  allowed?: Int32Array | undefined;
  /** Each: the last token is not sampled behind the others. */
  banned?: Int32Array[] | undefined;
  /** Texts that are not written: `withTextBias` looks up their tokens. */
  bannedTexts?: string[] | undefined;
  /** End the text; what they spell is no part of it. */
  stopTokens?: Int32Array | undefined;
  /** Before so many, nothing ends the text but a limit. Default 0. */
  minTokens?: number | undefined;
  /** The stop string or token that ended the text is part of it. Default false. */
  keepsStop?: boolean | undefined;
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

/** Counts over the whole life of the sequence, all rounds together. */
export interface EngineUsage {
  promptTokens: number;
  cachedTokens: number;
  resumedTokens: number;
  prefilledTokens: number;
  recomputedTokens: number;
  generatedTokens: number;
}

/**
 * Why a sequence does not run. `place`: as many run as may. `prefix`: another one is computing the beginning of its
 * prompt. `file`: a file with it is being read. `slot`: every slot is running or held, or would be taken from one that is likely to
 * come back. `moves`: this step has moved enough cells. `reader`: its reader has stopped. `cells`: it ran, and others took
 * its cells.
 */
export type WaitReason = "place" | "prefix" | "file" | "slot" | "moves" | "reader" | "cells";

/**
 * Where the cells came from that a sequence need not compute. `hold`: its own. `slot`: a slot that it took over. `copy`:
 * another slot. `ram`, `disk`: what had left its slot. `fork`: a snapshot of a model that cannot be cut back anywhere.
 */
export type PrefixSource = "none" | "hold" | "slot" | "copy" | "ram" | "disk" | "fork";

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
  /** llama.cpp's number. */
  vocabularyType: number;
  embeddingSize: number;
  /** Of most tensors: `Q4_K - Medium`. */
  fileType: string;
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
  /** A sequence can be cut back to any length; else to marks (`SequenceRequest.marks`). */
  cutsAnywhere: boolean;
}

/** What has gone wrong and nothing failed for. */
export interface EngineFaults {
  /** What the system said when it first refused a file; empty: it did not. */
  diskFault: string;
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
  /** What left its slot for host memory. */
  ramSequences: number;
  ramBytes: number;
  ramLimit: number;

  /** Sequences in files, or on their way there. */
  diskFiles: number;
  diskBytes: number;
  diskLimit: number;

  ramSaves: number;
  ramRestores: number;
  /** Given up for want of room. */
  ramDrops: number;
  /** Of saves and restores. */
  ramMovedBytes: number;
  diskSaves: number;
  diskRestores: number;
  /** Sequences that are in no file, or not any more, by reason: given up for want of room. */
  diskFull: number;
  /** The file was not what was written. */
  diskDamaged: number;
  /** It was of another model, options or build. */
  diskForeign: number;
  /** The system refused to read or to write. */
  diskFailed: number;
  /** Too much waited to be written. */
  diskBusy: number;
  /** In memory, of models that cannot be cut back anywhere. Gauges; within `ramLimit` beside `ramBytes`. */
  forks: number;
  forkBytes: number;
  forkSaves: number;
  /** Times that a sequence was cut back to one. */
  forkUses: number;
  /** Given up for want of room. */
  forkDrops: number;
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
  /** Decoded beside the rows that were due, of tokens that might come next. */
  draftedRows: number;
  /** Of these: their tokens came. */
  acceptedRows: number;
  /** That the draft model computed. */
  draftModelRows: number;
  steps: number;
  microBatches: number;
  copies: number;
  evictions: number;
  /** Rows an auditing backend saw; -1 when not audited. */
  auditedRows: number;
  /** Threads that compute now: fewer than there are cores while other processes use these. */
  computeThreads: number;
  /** Milliseconds that the inference thread's current step has taken so far; 0 while it is idle. */
  stepAgeMs: number;
}

/** One step of the inference thread, for metrics. */
export interface EngineStep {
  prefillRows: number;
  decodeRows: number;
  microBatches: number;
  copies: number;
  milliseconds: number;
}

/** One sequence. Only the prompt is needed. */
export interface SequenceRequest {
  /** 1 to `cellsPerSequence` - 1 token ids. */
  prompt: Int32Array;
  /** What an earlier process generated behind the prompt: it counts as generated, is told again and is not sampled. */
  begun?: Int32Array | undefined;
  /** Greedy where it says nothing, with seed 0. */
  sampling?: Partial<Sampling> | undefined;
  /**
   * Lengths of `prompt`, ascending, at most 64, up to which other prompts may be equal. A model that
   * cannot be cut back anywhere can be cut back to these; for others they mean nothing.
   */
  marks?: Int32Array | undefined;
  /**
   * The first tokens of `prompt` that other prompts begin with too. Engines that share a cache compute them once;
   * for others the number means nothing. Default 0.
   */
  shared?: number | undefined;
  /** At least 1. Default: to the end of the context. */
  maxTokens?: number | undefined;
  /** At most 256 strings, none empty; the text of a hit is not emitted. */
  stop?: string[] | undefined;
  /** Tell the log-probability of each sampled token and of so many of the likeliest, 0 to 1000. */
  topLogprobs?: number | undefined;
  /** Tell those that the sampler drew by, not the model's own. Default false. */
  postSampling?: boolean | undefined;
  /**
   * Tell the log-probability of each token of the prompt but the first, and of so many of the likeliest, 0 to 1000.
   * Nothing of such a prompt is taken from the cache.
   */
  promptLogprobs?: number | undefined;
  /** Default: never held, but by `pause`. */
  pause?: PauseTriggers | undefined;
  /** Keep the cells for the caller's return, in milliseconds after the end. Default 0. */
  leaseMs?: number | undefined;
  /** What is generated satisfies it from the first token on; then the generation ends. */
  grammar?: Grammar | undefined;
  /** Default true: tokens that the grammar leaves no choice about are not sampled. */
  forcedTokens?: boolean | undefined;
  /** Near `maxTokens`, end the text along a short path that the grammar allows. Default false. */
  closeAtLimit?: boolean | undefined;
  /** Cells are shared with sequences of the same salt alone. An integer of 53 bits; default 0. */
  salt?: number | undefined;
  /** Control tokens whose spelling is part of the text, such as the markers of a format. */
  spelledTokens?: Int32Array | undefined;
}

export interface ExtendOptions {
  /** From the first after the hold on; at least one. */
  tokens: Int32Array;
  /** As the resume will have it. */
  keepPending: boolean;
}

export interface ResumeOptions {
  /** At least one. */
  tokens: Int32Array;
  /** As of a prompt, but lengths of `tokens`. */
  marks?: Int32Array | undefined;
  /** Keep the sampled token that waits outside the cache before `tokens`. */
  keepPending: boolean;
  /** Of this round, as in the request. */
  maxTokens?: number | undefined;
  /** Begins afresh in this round; null: none. Absent: the held one goes on. */
  grammar?: Grammar | null | undefined;
}
