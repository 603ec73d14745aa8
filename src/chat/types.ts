/** Chat types that all wires and tools share, and the part of the engine that chat uses. Type-only. */

import type {
  EngineUsage,
  GenerateRequest,
  Generation,
  Grammar,
  GrammarSource,
  Sampling,
  SequenceWatch,
} from "../engine/types.ts";
import type { Guidance } from "../guidance/types.ts";

export type JsonSchema = { [key: string]: unknown };

export interface ToolDefinition {
  name: string;
  description?: string | undefined;
  parameters: JsonSchema;
  /** True: a schema that no mask can enforce is refused. False: the arguments are validated afterwards. */
  strict?: boolean | undefined;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text as the model wrote it or the client sent it. In a client's history it may be invalid JSON. */
  arguments: string;
  /** Why the arguments do not fit the tool's schema, where no mask enforced it. */
  problem?: string | undefined;
  /** True: a part of the schema could not be checked, so the arguments may fit. */
  mayFit?: boolean | undefined;
  /** They fit as this JSON text, without properties that are null where the schema refuses null. */
  withoutNulls?: string | undefined;
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
  /** Tools in the prompt. Empty: none. */
  tools: ToolDefinition[];
  templateVariables?: TemplateVariables | undefined;
  /**
   * What a tool call does. `none`: no call is looked for, markers are plain text. `external`: the
   * round ends and is returned, the lease is kept for its return. `internal`: the sequence is held.
   */
  toolMode: "none" | "external" | "internal";
  sampling: Sampling;
  stop: string[];
  /** Token limit over all rounds. Undefined: to the end of the context. */
  maxTokens?: number | undefined;
  /** The prompt is read for later requests. One that a template refuses for lack of a user's message is read up to there. */
  readsAhead?: boolean | undefined;
  /** Log-probabilities of content, and of so many of the likeliest tokens in its place: 0 to 20. */
  topLogprobs?: number | undefined;
  /** Log-probabilities of the prompt, and of so many of the likeliest tokens in its place: 0 to 20. */
  promptLogprobs?: number | undefined;
  onPromptLogprobs?: GenerateRequest["onPromptLogprobs"];
  /** Called with the prompt's tokens, before the engine begins to read them. */
  onPrompt?: ((tokens: Int32Array) => void) | undefined;
  /** Default: the model chooses between free text and calls, and masks enforce the tools' schemas. */
  guidance?: Guidance | undefined;
  signal?: AbortSignal | undefined;
  /**
   * Called with the number of tokens drawn over all rounds, each time it grows, with the tokens themselves, before an event
   * tells of them; and whenever the engine begins to read a prompt or results.
   */
  onTokens?: ((drawn: number, tokens?: Int32Array) => void) | undefined;
  /** Told what becomes of the sequences of the answer. */
  watch?: SequenceWatch | undefined;
  /** Called with the work that must end before the generation starts. If the work fails, the generation fails. */
  onPrepare?: ((work: Promise<unknown>) => void) | undefined;
  /** Generated tokens are spliced, and cells shared, only with requests of the same owner (API key). */
  owner: string;
  /** As `GenerateRequest.client`. */
  client?: string | undefined;
  /** Cells are shared with requests of the same salt alone. */
  cacheSalt?: string | undefined;
  /** The beginning of the answer. The model continues it, and events contain only what it adds. */
  prefill?: string | undefined;
  /** The prompt ends with the opening of the assistant's turn. Default true. */
  openTurn?: boolean | undefined;
  /** In front of the prompt, a history that no messages stand for. The answer is not remembered for splices then. */
  leadingTokens?: Int32Array | undefined;
  /** Called at the end of each turn that may have calls. */
  logger?: ToolLogger | undefined;
  /** The messages end with the results of a round that an earlier process held. Null: its tokens are not known. */
  heldTurn?: HeldTurn | null | undefined;
  /** An earlier process wrote the beginning of the first round. It is told again, and the round goes on. */
  written?: WrittenRound | undefined;
}

/** The beginning of a round, so that another process goes on with it. Plain data. */
export interface WrittenRound {
  tokens: readonly number[];
  /** Of its calls, in their order, as far as they were told of. */
  callIds: readonly string[];
}

/** What a held round is told by, so that another process goes on with the same tokens. Plain data. */
export interface HeldTurn {
  /** Prompt and generated tokens, the end token included if there was one. */
  tokens: readonly number[];
  /** What they stand for: a `SpliceRecord` without its tokens. */
  record: unknown;
}

/** The prompt of an answer. */
export type PromptRequest = Pick<
  ChatRequest,
  | "messages"
  | "tools"
  | "templateVariables"
  | "owner"
  | "prefill"
  | "openTurn"
  | "leadingTokens"
  | "readsAhead"
>;

/** Natural logarithms from the model's own logits; may be minus infinity. */
export interface TokenProbability {
  /** Its id; a remote endpoint tells none. */
  token?: number;
  /** May be incomplete UTF-8. */
  bytes: Uint8Array;
  logprob: number;
}

export interface ContentToken extends TokenProbability {
  /** The likeliest tokens at this position, the likeliest first. */
  top: TokenProbability[];
}

export interface ChatUsage extends EngineUsage {
  /** Part of the generated tokens. */
  reasoningTokens?: number;
}

/** `content_filter` comes only from a remote endpoint. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "cancelled";

export type ChatEvent =
  /** `done` of `total` tokens have been read; `cached` tokens before them were found in the cache. */
  | { type: "progress"; done: number; total: number; cached: number }
  | { type: "reasoning"; text: string }
  /** `logprobs`, if requested: those of the tokens of `text`. */
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
  | { type: "hold"; calls: ToolCall[]; usage: EngineUsage; turn?: HeldTurn | undefined }
  /**
   * `calls`: complete calls of the last round (external mode). `stopString`: the one of `stop` that
   * ended it, if one did. `stopToken`: the token of the sampling's rules that did.
   */
  | {
      type: "finish";
      reason: FinishReason;
      calls: ToolCall[];
      usage: ChatUsage;
      stopString?: string;
      stopToken?: number;
      /** Why the document does not fit its schema, or why there is none. */
      problem?: string;
      /** Sentences for the client: what is missing in the answer, and why. */
      warnings?: string[];
    };

export interface ToolOutput {
  callId: string;
  name: string;
  content: string;
}

export interface ResumeLimits {
  /** Token limit of all rounds that follow, if it is lower than what the request leaves. */
  maxTokens?: number | undefined;
  /** Names of the tools that may still be called. Default: those of the request. Empty: the model must answer. */
  callable?: readonly string[] | undefined;
  /**
   * Said to the model behind the results: by the user, or at the end of the last result where the template takes no
   * user there without writing anew what came before.
   */
  say?: string | undefined;
  /** Replace `callable` and `say` if results must be cut. */
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
  /** Ends the generation at a `hold`; the caller answers the calls. `finish` with reason `tool_calls` follows. */
  release(): void;
  cancel(): void;
}

/** The engine's model, as chat sees it. */
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
  /** `cellsPerSequence`: tokens one sequence may hold. `cutsAnywhere`, `isShared`: see `CacheInfo`. */
  readonly cache: {
    readonly cellsPerSequence: number;
    readonly cutsAnywhere?: boolean;
    readonly isShared?: boolean;
  };
  /**
   * A special token is recognized where it is spelled, unless a guard character stands inside its
   * spelling or directly after its first character. Guards are removed.
   */
  tokenize(text: string, guard: string, addBos: boolean): Promise<Int32Array>;
  /** The token's text; of a control token, its spelling. */
  tokenBytes(token: number): Uint8Array;
  /** @throws FermataError invalid_grammar */
  compileGrammar(source: GrammarSource): Promise<Grammar>;
  generate(request: GenerateRequest): Generation;
}

/** The log of chat and tools; a pino logger fits. */
export interface Logger {
  warn(details: object, message: string): void;
}

/** Receives the ends of turns and of tool calls. */
export interface ToolLogger extends Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** Counts since the start; they only grow. */
export interface ChatCounters {
  /** Rounds whose template rewrites history: the hold was released and the prompt rendered again. */
  rerenders: number;
  /** Requests whose prompt reused generated tokens. */
  splices: number;
  /** Rounds that computed only the tokens of the results. */
  resumes: number;
  /** Tool results that were cut to fit the context window. */
  truncatedResults: number;
  /** Holds that were not extended, because their template cannot show an incomplete result. */
  unextendedHolds: number;
}
