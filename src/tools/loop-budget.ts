/** How much one answer may do with tools, and what is said when that is spent: to the model, then to the client. */

import type { ToolCall, ToolOutput } from "../chat/types.ts";
import { RepeatGuard } from "./repeat-guard.ts";

export interface LoopLimits {
  /** Rounds of calls that are run. */
  maxRounds: number;
  /** Calls that are run. */
  maxCalls: number;
  /** From the beginning of the answer; what runs then is stopped. */
  maxSeconds: number;
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

/** Rounds of repeats that are refused; after the last of them no tool can be called. */
const maxRefusedRounds = 2;

export class LoopBudget {
  readonly #limits: LoopLimits;
  readonly #repeats = new RepeatGuard();
  readonly deadline: Deadline;
  /** Of the round that is written or run. */
  #round = 1;
  #calls = 0;
  #refusedRounds = 0;
  #reached: string | null = null;

  constructor(limits: LoopLimits) {
    this.#limits = limits;
    const { maxSeconds } = limits;
    this.deadline = { at: performance.now() + maxSeconds * 1000, seconds: maxSeconds };
  }

  /** The limit because of which a call was not run: no more can be called. Null: there is none. */
  get reached(): string | null {
    return this.#reached;
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

  /** To be asked once a round, when it is whole. */
  judge(calls: readonly ToolCall[], own: number): Verdict {
    const { maxRounds, maxCalls, maxSeconds } = this.#limits;
    const room = Math.max(0, maxCalls - this.#calls);
    this.#calls += own;
    if (own > room) this.#reached = `the limit of ${maxCalls} tool calls`;
    const repeated = this.#repeats.refuse(calls);
    if (repeated !== undefined) {
      this.#refusedRounds += 1;
      if (this.#repeats.isStuck || this.#refusedRounds === maxRefusedRounds)
        this.#reached = "the limit of equal calls in a row";
    }
    const isLast = this.#round > maxRounds;
    if (isLast) this.#reached = `the limit of ${maxRounds} rounds of tool calls`;
    const isLate = this.#isLate();
    if (isLate) this.#reached = `the limit of ${maxSeconds} seconds`;
    const refusal = isLast || isLate ? `Error: not run: ${this.#reached} is reached.` : repeated;
    return { room, refusal };
  }

  /** What the round's outputs go on with: the last ones say that no more calls are run. */
  close(outputs: ToolOutput[]): ToolOutput[] {
    const { maxRounds } = this.#limits;
    const isLast = this.#round === maxRounds;
    this.#round += 1;
    this.#repeats.learn(outputs);
    const reached =
      this.#reached ?? (isLast ? `the limit of ${maxRounds} rounds of tool calls` : null);
    if (reached === null) return outputs;
    const notice = `[T${reached.slice(1)} is reached. No more tools can be called: answer now with what you have.]`;
    return outputs.map((output, index) =>
      index < outputs.length - 1
        ? output
        : { ...output, content: `${output.content}\n\n${notice}` },
    );
  }

  #isLate(): boolean {
    return performance.now() >= this.deadline.at;
  }
}
