/** How much one answer may do with tools, and what is said when that is spent: to the model, then to the client. */

import type { ToolCall, ToolOutput } from "../chat/types.ts";
import type { LoopWords } from "./loop-words.ts";
import { RepeatGuard } from "./repeat-guard.ts";

export interface LoopLimits {
  /** Rounds of calls that are run. */
  maxRounds: number;
  /** Calls that are run. */
  maxCalls: number;
  /** From the beginning of the answer; what runs then is stopped. */
  maxSeconds: number;
  /** Of the answer, calls and all. A part of them is kept for its last turn. */
  maxTokens: number;
}

/** `room`: this many of the calls are run; `refusal`: none, this is each one's result. */
export interface Verdict {
  room: number;
  refusal: string | undefined;
}

/** When all calls are to end. */
export interface Deadline {
  /** On `performance.now()`'s clock. */
  at: number;
  /** The limit that it comes of. */
  seconds: number;
}

/** Tokens that are kept for the last turn, where a quarter of the limit is not less. */
const answerTokens = 256;

export class LoopBudget {
  readonly #limits: LoopLimits;
  readonly words: LoopWords;
  readonly #repeats = new RepeatGuard();
  readonly deadline: Deadline;
  /** Of the round that is written or run. */
  #round = 1;
  #calls = 0;
  #hasCut = false;
  #reached: string | null = null;

  constructor(limits: LoopLimits, words: LoopWords) {
    this.#limits = limits;
    this.words = words;
    const { maxSeconds } = limits;
    this.deadline = { at: performance.now() + maxSeconds * 1000, seconds: maxSeconds };
  }

  /** The limit at which tools were turned off. Null: there is none. */
  get reached(): string | null {
    return this.#reached;
  }

  /** A round's results were cut to fit the context. One more such round is the last: no result fits behind it. */
  get hasCut(): boolean {
    return this.#hasCut;
  }

  /** To be told when a round's results were cut. */
  cut(): void {
    if (this.#hasCut) this.#reached ??= "the limit of the context";
    this.#hasCut = true;
  }

  /** Whether the last of `closed` may start before its round is whole. `own`: how many of them are run here. */
  mayStart(closed: readonly ToolCall[], own: number): boolean {
    const { maxRounds, maxCalls } = this.#limits;
    return (
      this.#reached === null &&
      this.#round <= maxRounds &&
      this.#calls + own <= maxCalls &&
      !this.#isLate() &&
      !this.#repeats.mayRefuse(closed)
    );
  }

  /** To be asked once a round, when it is whole. `tokens`: generated so far. */
  judge(calls: readonly ToolCall[], own: number, tokens: number): Verdict {
    const { maxRounds, maxCalls, maxSeconds, maxTokens } = this.#limits;
    const room = Math.max(0, maxCalls - this.#calls);
    this.#calls += own;
    if (own > room) this.#reached = `the limit of ${maxCalls} tool calls`;
    const repeated = this.#repeats.refuse(calls);
    if (repeated !== undefined && this.#repeats.isStuck)
      this.#reached = "the limit of equal calls in a row";
    const callTokens = maxTokens - Math.min(answerTokens, Math.floor(maxTokens / 4));
    if (tokens >= callTokens) this.#reached = `the limit of ${callTokens} tokens for calls`;
    const isLast = this.#round > maxRounds;
    if (isLast) this.#reached = `the limit of ${maxRounds} rounds of tool calls`;
    const isLate = this.#isLate();
    if (isLate) this.#reached = `the limit of ${maxSeconds} seconds`;
    const refusal = isLast || isLate ? `Error: not run: ${this.#reached} is reached.` : repeated;
    return { room, refusal };
  }

  /** What the user says to the model behind the round's outputs, if anything. */
  close(outputs: readonly ToolOutput[]): string | undefined {
    const isLast = this.#round === this.#limits.maxRounds;
    this.#round += 1;
    this.#repeats.learn(outputs);
    if (this.#reached !== null || isLast) return this.words.last;
    return this.#repeats.isStale ? this.words.repeat : undefined;
  }

  /** To be told when the text repeats itself. @returns what the user says to the model then */
  endRepetition(): string {
    this.#reached = "the limit of repeated text";
    return this.words.last;
  }

  #isLate(): boolean {
    return performance.now() >= this.deadline.at;
  }
}
