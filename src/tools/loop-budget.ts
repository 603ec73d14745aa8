/** The limits of one answer with tools, and the words for the model and the client when a limit is reached. */

import { canonicalArguments } from "../chat/template/normalize.ts";
import type { ChatRequest, ToolCall, ToolOutput } from "../chat/types.ts";

export interface LoopLimits {
  /** Most rounds with calls. */
  maxRounds: number;
  /** Most calls. */
  maxCalls: number;
  /** Time from the start of the answer. Then running calls are stopped. */
  maxSeconds: number;
  /** Tokens of the answer, calls included. A part of them is kept for the last turn. */
  maxTokens: number;
}

/** `room`: how many of the calls run. `refusal`: no call runs, and this is the result of each. */
export interface Verdict {
  room: number;
  refusal: string | undefined;
}

/** When all calls must end. */
export interface Deadline {
  /** On `performance.now()`'s clock. */
  at: number;
  /** The limit that set this time. */
  seconds: number;
}

/** Rounds of equal calls that are run: a tool may be polled, and an error may be transient. */
const MAX_EQUAL_ROUNDS = 3;
/** Where the results were equal, too: another one would be no news. */
const MAX_EQUAL_RESULTS = 2;

/** Tokens that are kept for the last turn, or a quarter of the limit if that is less. */
const answerTokens = 256;

export class LoopBudget {
  readonly #limits: LoopLimits;
  readonly words: LoopWords;
  readonly #repeats = new RepeatGuard();
  readonly deadline: Deadline;
  /** The number of the current round. */
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

  /** A round's results were cut to fit the context. After one more such round no result fits. */
  get hasCut(): boolean {
    return this.#hasCut;
  }

  /** Call it when a round's results were cut. */
  cut(): void {
    if (this.#hasCut) this.#reached ??= "the limit of the context";
    this.#hasCut = true;
  }

  /** Whether the last of `closed` may start before its round ends. `own`: how many of them Fermata runs. */
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

  /** Call it once per round, when the round has ended. `tokens`: generated so far. */
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

  /** Words of the user behind the round's outputs, if any. */
  close(outputs: readonly ToolOutput[]): string | undefined {
    const isLast = this.#round === this.#limits.maxRounds;
    this.#round += 1;
    this.#repeats.learn(outputs);
    if (this.#reached !== null || isLast) return this.words.last;
    return this.#repeats.isStale ? this.words.repeat : undefined;
  }

  /** Call it when the text repeats itself. @returns words of the user for the model */
  endRepetition(): string {
    this.#reached = "the limit of repeated text";
    return this.words.last;
  }

  #isLate(): boolean {
    return performance.now() >= this.deadline.at;
  }
}

/** Notices a model that makes the same calls over and over, as small models do when a result does not please them. */
class RepeatGuard {
  #last: string[] = [];
  /** Rounds in a row with these calls. */
  #count = 0;
  /** By a round's calls: what they came to last. */
  readonly #known = new Map<string, string>();
  #isStale = false;
  #isRefused = false;

  /** Call it once per round. @returns text for the model instead of results; undefined: run the calls */
  refuse(calls: readonly ToolCall[]): string | undefined {
    const keys = calls.map(keyOf);
    const isEqual = keys.length === this.#last.length && this.#begins(keys);
    this.#count = isEqual ? this.#count + 1 : 1;
    this.#last = keys;
    this.#isRefused = this.#count > this.#most;
    if (!this.#isRefused) return undefined;
    return `Error: not run: the same call was made ${this.#count} times in a row, and its results are above. Do something else, or answer with what you have.`;
  }

  /** A round that begins with these calls may be refused when it is whole. */
  mayRefuse(calls: readonly ToolCall[]): boolean {
    return this.#count >= this.#most && this.#begins(calls.map(keyOf));
  }

  /** The last round brought nothing new: it was refused, or its calls had the same results before in this answer. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** Equal calls in a row bring nothing new: only without tools does such a model answer. */
  get isStuck(): boolean {
    return this.#isStale && this.#count > 1;
  }

  /** What the round's calls came to. */
  learn(outputs: readonly ToolOutput[]): void {
    const calls = JSON.stringify(this.#last);
    const results = JSON.stringify(outputs.map(({ content }) => content));
    this.#isStale = this.#isRefused || this.#known.get(calls) === results;
    if (!this.#isRefused) this.#known.set(calls, results);
  }

  get #most(): number {
    return this.isStuck ? MAX_EQUAL_RESULTS : MAX_EQUAL_ROUNDS;
  }

  /** The last round begins with these. */
  #begins(keys: readonly string[]): boolean {
    return keys.every((key, index) => key === this.#last[index]);
  }
}

function keyOf({ name, arguments: text }: ToolCall): string {
  return JSON.stringify([name, canonicalArguments(text)]);
}

/**
 * What a model that must answer is told, as words of the user: small models read over what stands in a result, or
 * repeat it as their answer. Measured on them: without "in words" they call on, and without the question they tell
 * what the last result says.
 */
export interface LoopWords {
  /** Tools can no longer be called. */
  last: string;
  /** A call and its result were there before. */
  repeat: string;
}

/** A longer question is not repeated. */
const maxQuestion = 2000;

export function loopWords({
  messages,
  guidance,
}: Pick<ChatRequest, "messages" | "guidance">): LoopWords {
  const form = guidance?.document === undefined ? "in words" : "in the form that was asked for";
  const question = messages.findLast(({ role }) => role === "user")?.content.trim() ?? "";
  const isQuoted = question !== "" && question.length <= maxQuestion;
  const quote = isQuoted ? `\n\nMy question was: ${question}` : "";
  return {
    last: `No more tools can be called. Answer my question now, ${form}, with what the results above say.${quote}`,
    repeat: `The same call gave the same result again. Do something else, or answer my question ${form} with what the results above say.${quote}`,
  };
}
