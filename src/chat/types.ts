/** Neutral chat types, which wires and tools share, and what chat needs of the engine. Type-only. */

import type {
  EngineUsage,
  GenerateRequest,
  Generation,
  Grammar,
  GrammarSource,
  Sampling,
} from "../engine/types.ts";
import type { Guidance } from "../guidance/types.ts";

export type JsonSchema = { [key: string]: unknown };

export interface ToolDefinition {
  name: string;
  description?: string | undefined;
  parameters: JsonSchema;
  /** A schema that no mask can hold is refused; else its arguments are validated afterwards. */
  strict?: boolean | undefined;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text as the model wrote it or the client sent it; maybe not valid JSON in a client's history. */
  arguments: string;
  /** What the arguments get wrong by the tool's schema, where no mask held them to it. */
  problem?: string | undefined;
  /** The problem is that a part of the schema could not be applied: the arguments may fit. */
  mayFit?: boolean | undefined;
}

export type ChatMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: string }
  | {
      role: "assistant";
      content: string;
      reasoning?: string | undefined;
      toolCalls?: ToolCall[] | undefined;
    }
  | { role: "tool"; toolCallId: string; name?: string | undefined; content: string };

/**
 * JSON values for the template, by name: `enable_thinking`, `reasoning_effort`, … Names of its own inputs
 * (`messages`, `tools`, `bos_token`, …) have no effect.
 */
export type TemplateVariables = Readonly<Record<string, unknown>>;

export interface ChatRequest {
  messages: ChatMessage[];
  /** Tools in the prompt. Empty: none are injected. */
  tools: ToolDefinition[];
  templateVariables?: TemplateVariables | undefined;
  /**
   * What a tool call does. `none`: no call is looked for, markers are plain text. `external`: the
   * round ends and is returned, the lease is kept for its return. `internal`: the sequence is held.
   */
  toolMode: "none" | "external" | "internal";
  sampling: Sampling;
  stop: string[];
  /** Over all rounds. Undefined: to the end of the context. */
  maxTokens?: number | undefined;
  /** Log-probabilities of content, and of so many of the likeliest tokens in its place: 0 to 20. */
  topLogprobs?: number | undefined;
  /** Default: the model chooses, calls are held to their tools' schemas, text is free. */
  guidance?: Guidance | undefined;
  signal?: AbortSignal | undefined;
  /**
   * Told how many tokens have been drawn, over all rounds, whenever it is more; and as often as the engine begins to
   * read a prompt or results.
   */
  onTokens?: ((drawn: number) => void) | undefined;
  /** Told what the generation waits for before it is begun; what fails there, fails the generation. */
  onPrepare?: ((work: Promise<unknown>) => void) | undefined;
  /** Splicing of generated tokens never crosses this (API key). */
  owner: string;
  /** How the answer begins: the model continues it, and only what it adds is told. */
  prefill?: string | undefined;
  /** The prompt ends with the opening of the assistant's turn. Default true. */
  openTurn?: boolean | undefined;
  /** Is told how each turn ends that may have calls. */
  logger?: ToolLogger | undefined;
}

/** What the model reads before it answers. */
export type PromptRequest = Pick<
  ChatRequest,
  "messages" | "tools" | "templateVariables" | "owner" | "prefill" | "openTurn"
>;

/** From the logits as the model gave them. Natural logarithms, maybe minus infinity. */
export interface TokenProbability {
  /** Maybe not whole UTF-8. */
  bytes: Uint8Array;
  logprob: number;
}

export interface ContentToken extends TokenProbability {
  /** The likeliest tokens in its place, the likeliest first. */
  top: TokenProbability[];
}

export interface ChatUsage extends EngineUsage {
  /** Of the generated ones. */
  reasoningTokens?: number;
}

/** `content_filter`: another server's, of an agent with an endpoint. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "cancelled";

export type ChatEvent =
  /** Of `total` tokens that are to be read, `done` are; `cached` before them were found in the cache. */
  | { type: "progress"; done: number; total: number; cached: number }
  | { type: "reasoning"; text: string }
  /** `logprobs`: of the tokens that the text is made of, if asked for. */
  | { type: "content"; text: string; logprobs?: ContentToken[] }
  /** First event of a call: its name is known. `index` counts calls of the round. */
  | { type: "call-start"; index: number; id: string; name: string }
  | { type: "call-arguments"; index: number; delta: string }
  /** The arguments are complete JSON. */
  | { type: "call-end"; index: number; call: ToolCall }
  /**
   * Internal mode: the sequence is held; give results with `resume`. No calls: the text repeats itself behind
   * results, and a resume without tools and with words of the user lets the model answer.
   */
  | { type: "hold"; calls: ToolCall[]; usage: EngineUsage }
  /**
   * `calls`: complete calls of the last round (external mode). `stopString`: the one of `stop` that
   * ended it, if one did.
   */
  | {
      type: "finish";
      reason: FinishReason;
      calls: ToolCall[];
      usage: ChatUsage;
      stopString?: string;
      /** What the document gets wrong where no mask held it, or why there is none. */
      problem?: string;
      /** Sentences for the client: what the answer lacks, and why. */
      warnings?: string[];
    };

export interface ToolOutput {
  callId: string;
  name: string;
  content: string;
}

export interface ResumeLimits {
  /** Of all rounds that follow, where that is less than what the request leaves. */
  maxTokens?: number | undefined;
  /** Names of the tools that may still be called. Default: as the request says. Empty: an answer follows. */
  callable?: readonly string[] | undefined;
  /**
   * Said to the model behind the results: by the user, or at the end of the last result where the template takes no
   * user there without writing anew what came before.
   */
  say?: string | undefined;
  /** Take the place of `callable` and `say` if results have to be cut. */
  ifCut?: Pick<ResumeLimits, "callable" | "say"> | undefined;
}

/** A chat generation over all its rounds. Iterate once; `resume` answers a `hold` event. */
export interface ChatGeneration extends AsyncIterable<ChatEvent> {
  /**
   * Tells what is known of a call's output before `resume`: all of it, or its beginning. It is prefilled
   * while the sequence is held, where the template allows. It may come before the hold; each time takes
   * the place of the time before. What the output turns out not to begin with costs time and no more.
   */
  extend(output: ToolOutput, isWhole: boolean): void;
  /**
   * Appends the template's tool-result section for `outputs` (order of the calls) and continues. A
   * result that does not fit is truncated with a visible marker.
   * @returns whether one was
   */
  resume(outputs: ToolOutput[], limits?: ResumeLimits): Promise<boolean>;
  /** Ends at a `hold`: its calls are the caller's. `finish` with reason `tool_calls` follows. */
  release(): void;
  cancel(): void;
}

/** What chat knows of the engine's model. */
export interface ChatModel {
  readonly chatTemplate: string | null;
  readonly bosToken: string;
  readonly eosToken: string;
  readonly addBos: boolean;
  /** Spellings of all CONTROL and USER_DEFINED tokens. */
  readonly specialTokens: readonly {
    readonly id: number;
    readonly text: string;
    readonly kind?: "control" | "user_defined";
  }[];
}

/** The part of the engine that chat uses. */
export interface ChatEngine {
  readonly model: ChatModel;
  /** `cellsPerSequence`: tokens one sequence may hold. */
  readonly cache: { readonly cellsPerSequence: number };
  /**
   * A special token is recognized where it is spelled, unless a guard character stands inside its
   * spelling or directly after its first character. Guards are removed.
   */
  tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array>;
  /** Of a control token, its spelling. */
  tokenBytes(token: number): Uint8Array;
  /** @throws FermataError invalid_grammar */
  compileGrammar(source: GrammarSource): Promise<Grammar>;
  generate(request: GenerateRequest): Generation;
}

/** What chat and tools write to; pino's loggers fit. */
export interface Logger {
  warn(details: object, message: string): void;
}

/** What the turns of a model and the tools that they call are told to. */
export interface ToolLogger extends Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** Counts since the start; they only grow. */
export interface ChatCounters {
  /** Rounds whose template rewrites history: the held sequence was given up and the prompt re-rendered. */
  rerenders: number;
  /** Requests whose prompt reused generated tokens. */
  splices: number;
  /** Rounds that were resumed with the result's tokens only. */
  resumes: number;
  /** Tool results that were cut to fit the context window. */
  truncatedResults: number;
  /** Holds that were not prefilled: their template has no place for a result that is not whole. */
  unextendedHolds: number;
}
