/** One sequence as an async iterator: the addon's events in order, its calls to the addon. */

import { FermataError } from "../errors.ts";
import type { NativeEngine, NativeEvent, NativeLogprobs } from "../native/addon-types.ts";
import { callNative, fromFailure, fromThrown } from "./native-errors.ts";
import type {
  EngineUsage,
  ExtendOptions,
  GenerateRequest,
  Generation,
  GenerationEvent,
  ResumeOptions,
  SequenceEvent,
  SequenceWatcher,
  TokenLogprobs,
  WaitReason,
} from "./types.ts";

/** Generated tokens that may wait for the consumer before decoding skips the sequence. */
export const acknowledgeWindow = 1024;

/** The addon's functions that a generation calls. */
export type GenerationControls = Pick<
  NativeEngine,
  "pause" | "extend" | "resume" | "release" | "cancel" | "acknowledge"
>;

/** How a generation gets to the addon. */
interface Entry {
  /** @returns its id there @throws as the addon */
  submit(): number;
  /** It will not be submitted. */
  leave(): void;
}

interface WaitDetails {
  /** The generation that it waits for, if it is a single one. */
  behind?: EngineGeneration | undefined;
  ago?: number;
}

type Step = IteratorResult<GenerationEvent, undefined>;

interface Waiter {
  resolve: (step: Step) => void;
  reject: (error: FermataError) => void;
}

/** The usage of a sequence that has not started. */
export const noUsage: Readonly<EngineUsage> = {
  promptTokens: 0,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 0,
  recomputedTokens: 0,
  generatedTokens: 0,
};

const noTokens = new Int32Array(0);
const over: Step = { done: true, value: undefined };

/** One sequence of the addon: its events become an async iterator, its calls go to the addon. */
export class EngineGeneration implements Generation, AsyncIterator<GenerationEvent, undefined> {
  readonly #native: GenerationControls;
  /** Of the addon's; 0: it was not submitted. */
  #id = 0;
  readonly #signal: AbortSignal | undefined;
  readonly #watcher: SequenceWatcher | undefined;
  readonly #onPromptLogprobs: GenerateRequest["onPromptLogprobs"];
  readonly #tokens: number[];
  readonly #detokenizer = new Detokenizer();
  readonly #queue: GenerationEvent[] = [];
  readonly #waiters: Waiter[] = [];
  #state: "running" | "held" | "ended" = "running";
  #pendingToken = false;
  /** Since its last admission a token was sampled. */
  #isDecoding = false;
  #abandoned = false;
  /** Null: it was submitted, or never will be. */
  #entry: Entry | null = null;
  #failure: FermataError | undefined;

  constructor(
    native: GenerationControls,
    prompt: Int32Array,
    signal: AbortSignal | undefined,
    watcher?: SequenceWatcher,
    onPromptLogprobs?: GenerateRequest["onPromptLogprobs"],
  ) {
    this.#native = native;
    this.#signal = signal;
    this.#watcher = watcher;
    this.#onPromptLogprobs = onPromptLogprobs;
    this.#tokens = Array.from(prompt);
    signal?.addEventListener("abort", this.#abort);
  }

  get id(): number {
    return this.#id;
  }

  get tokens(): readonly number[] {
    return this.#tokens;
  }

  waitFor(entry: Entry): void {
    this.#entry = entry;
  }

  /** It does not run. */
  wait(reason: WaitReason | "turn", { behind, ago = 0 }: WaitDetails = {}): void {
    const watcher = behind === undefined ? undefined : behind.#watcher;
    this.#tell({ type: "waiting", reason, behind: watcher ?? null, ago });
  }

  /** @throws as the addon */
  submit(): void {
    this.#id = this.#entry?.submit() ?? 0;
    this.#entry = null;
    this.#tell({ type: "submitted" });
  }

  /** Submits what waited. What the addon refuses, the next read throws. */
  enter(): void {
    try {
      this.submit();
    } catch (thrown) {
      this.fail(fromThrown(thrown));
    }
  }

  pause(): void {
    if (this.#state === "running" && this.#entry === null) this.#native.pause(this.#id);
  }

  extend({ tokens, keepPending }: ExtendOptions): void {
    if (this.#state !== "held") return;
    callNative(() => this.#native.extend({ id: this.#id, tokens, keepPending }));
  }

  resume(options: ResumeOptions): void {
    if (this.#state !== "held") {
      throw new FermataError("not_held", "Only a held generation can be resumed.");
    }
    const { tokens, keepPending } = options;
    const maxTokens = tokenLimit(options.maxTokens);
    callNative(() => this.#native.resume({ ...options, id: this.#id, maxTokens }));
    this.#state = "running";
    this.#tell({ type: "resume" });
    if (this.#pendingToken && !keepPending) this.#tokens.pop();
    // A character that the hold split is not completed by tokens of others.
    if (tokens.length > 0) this.#detokenizer.end();
    for (const token of tokens) this.#tokens.push(token);
  }

  release(): void {
    if (this.#state === "held") this.#native.release(this.#id);
  }

  cancel(): void {
    if (this.#state === "ended") return;
    if (this.#entry === null) this.#native.cancel(this.#id);
    else this.cancelUnsubmitted();
  }

  [Symbol.asyncIterator](): AsyncIterator<GenerationEvent, undefined> {
    return this;
  }

  next(): Promise<Step> {
    const event = this.#queue.shift();
    if (event) {
      this.#acknowledge(event);
      return Promise.resolve({ done: false, value: event });
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure) return Promise.reject(failure);
    if (this.#state === "ended" || this.#abandoned) return Promise.resolve(over);
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** The consumer leaves the loop early: cancels, and drops unread events. */
  return(): Promise<Step> {
    this.#abandoned = true;
    this.#failure = undefined;
    this.#queue.length = 0;
    this.cancel();
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(over);
    return Promise.resolve(over);
  }

  /** Takes an event of this sequence; after `finished` or `failed` none may follow. */
  accept(event: NativeEvent): void {
    switch (event.kind) {
      case "waiting":
        // The router calls `wait`.
        break;
      case "admitted": {
        const { reused, source, total, ago } = event;
        this.#isDecoding = false;
        this.#tell({ type: "admitted", reused, source, total, ago });
        break;
      }
      case "tokens":
        if (!this.#isDecoding) this.#tell({ type: "decode" });
        this.#isDecoding = true;
        for (const token of event.tokens) this.#tokens.push(token);
        this.#emit({
          type: "text",
          text: this.#detokenizer.push(event.text),
          tokens: event.tokens,
          ...(event.logprobs === undefined
            ? {}
            : { logprobs: withTokens(event.logprobs, event.tokens) }),
        });
        break;
      case "progress":
        this.#emit({
          type: "progress",
          done: event.done,
          total: event.total,
          cached: Math.max(0, this.#tokens.length - event.total),
        });
        break;
      case "prompt_logprobs":
        this.#onPromptLogprobs?.(withTokens(event.logprobs, this.#tokens.slice(event.from)));
        break;
      case "tool_call_ready":
        this.#emit({ type: "tool-call-ready", callIndex: event.callIndex });
        break;
      case "tool_call_pause":
        this.#hold(event);
        break;
      case "extended":
        this.#tell({ type: "extended", done: event.done });
        this.#emit({ type: "extended", done: event.done, total: event.total });
        break;
      case "finished":
        this.#emitText(this.#detokenizer.push(event.text) + this.#detokenizer.end());
        this.#end();
        this.#tell({ type: "end", reason: event.reason, usage: event.usage });
        this.#emit({
          type: "finish",
          reason: event.reason,
          stopString: event.stopString,
          ...(event.stopToken === undefined ? {} : { stopToken: event.stopToken }),
          usage: event.usage,
        });
        this.#settle();
        break;
      case "failed":
        this.fail(fromFailure(event.code, event.message), event.usage);
        break;
    }
  }

  /** Ends the generation with an error that the consumer's next read throws. */
  fail(error: FermataError, usage: EngineUsage | null = null): void {
    if (this.#state === "ended") return;
    this.#end();
    this.#tell({ type: "end", reason: "failed", usage });
    const waiter = this.#waiters.shift();
    if (waiter) waiter.reject(error);
    else if (!this.#abandoned) this.#failure = error;
    this.#settle();
  }

  /** Ends a generation that was never submitted, as cancelled. */
  cancelUnsubmitted(): void {
    this.#end();
    this.#tell({ type: "end", reason: "cancelled", usage: null });
    this.#emit({
      type: "finish",
      reason: "cancelled",
      stopString: "",
      usage: { ...noUsage, promptTokens: this.#tokens.length },
    });
    this.#settle();
  }

  readonly #abort = (): void => this.cancel();

  #tell(event: SequenceEvent): void {
    this.#watcher?.(event);
  }

  #hold(event: NativeEvent & { kind: "tool_call_pause" }): void {
    let text = this.#detokenizer.push(event.text);
    // Asked for in the middle of a text, the hold may split a character that goes on after it.
    if (event.reason !== "requested") text += this.#detokenizer.end();
    this.#emitText(text);
    this.#state = "held";
    this.#pendingToken = event.pendingToken;
    this.#tell({ type: "hold", usage: event.usage });
    this.#emit({
      type: "hold",
      reason: event.reason,
      pendingToken: event.pendingToken,
      usage: event.usage,
    });
  }

  #emitText(text: string): void {
    if (text !== "") this.#emit({ type: "text", text, tokens: noTokens });
  }

  #emit(event: GenerationEvent): void {
    if (this.#abandoned) return;
    const waiter = this.#waiters.shift();
    if (waiter) {
      this.#acknowledge(event);
      waiter.resolve({ done: false, value: event });
      return;
    }
    // Only the latest of the unread progress events matters.
    const isProgress = event.type === "progress" || event.type === "extended";
    if (isProgress && this.#queue.at(-1)?.type === event.type) this.#queue.pop();
    this.#queue.push(event);
  }

  #acknowledge(event: GenerationEvent): void {
    if (event.type === "text" && event.tokens.length > 0 && this.#state !== "ended") {
      this.#native.acknowledge(this.#id, event.tokens.length);
    }
  }

  #end(): void {
    this.#state = "ended";
    this.#entry?.leave();
    this.#entry = null;
    this.#signal?.removeEventListener("abort", this.#abort);
  }

  #settle(): void {
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(over);
  }
}

function withTokens(
  logprobs: readonly NativeLogprobs[],
  tokens: ArrayLike<number>,
): TokenLogprobs[] {
  return logprobs.map((entry, index) => ({ token: tokens[index] ?? -1, ...entry }));
}

/** The limit for the addon. A limit above its number range means none. @throws FermataError invalid_value */
export function tokenLimit(maxTokens: number | undefined): number | undefined {
  if (maxTokens === undefined) return undefined;
  if (!Number.isInteger(maxTokens) || maxTokens < 1) {
    throw new FermataError("invalid_value", "maxTokens must be a whole number of at least 1.", {
      param: "maxTokens",
    });
  }
  return Math.min(maxTokens, 2 ** 31 - 1);
}

/**
 * Turns the bytes of a token stream into text. A character whose bytes are spread over tokens comes
 * out whole with its last byte; bytes that are no UTF-8 become U+FFFD.
 */
export class Detokenizer {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The text that `bytes` completes. An unfinished character waits for the next call. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** Ends the stream: an unfinished character becomes U+FFFD. A new stream may follow. */
  end(): string {
    return this.#decoder.decode();
  }
}
