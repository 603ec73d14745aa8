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

export type Verdict =
  /** `room`: so many of the calls are run; `refusal`: none, this is each one's result. */
  | { kind: "run"; room: number; refusal: string | undefined }
  /** The model was told to answer and calls tools again: its answer ends. For the client. */
  | { kind: "stop"; message: string };

/** When all calls are to end. */
export interface Deadline {
  /** On `performance.now()`'s clock. */
  at: number;
  /** The limit that it comes of. */
  seconds: number;
}

/** Rounds of repeats that are refused before the answer ends. */
const maxRefusedRounds = 3;

export class LoopBudget {
  readonly #limits: LoopLimits;
  readonly #repeats = new RepeatGuard();
  readonly deadline: Deadline;
  /** Of the round that is written or run. */
  #round = 1;
  #calls = 0;
  #refusedRounds = 0;
  /** The limit that the model was told of. */
  #spent: string | null = null;

  constructor(limits: LoopLimits) {
    this.#limits = limits;
    const { maxSeconds } = limits;
    this.deadline = { at: performance.now() + maxSeconds * 1000, seconds: maxSeconds };
  }

  /** Whether the last of `closed` may start before its round is whole. `own`: how many of them are run here. */
  mayStart(closed: readonly ToolCall[], own: number): boolean {
    const { maxRounds, maxCalls } = this.#limits;
    return (
      this.#spent === null &&
      this.#round <= maxRounds &&
      this.#calls + own <= maxCalls &&
      !this.#isLate() &&
      !this.#repeats.mayRefuse(closed)
    );
  }

  /** To be asked once a round, when it is whole. */
  judge(calls: readonly ToolCall[], own: number): Verdict {
    const { maxRounds, maxCalls, maxSeconds } = this.#limits;
    if (this.#round > maxRounds) return stop(`the limit of ${maxRounds} rounds of tool calls`);
    if (this.#spent !== null) return stop(this.#spent);
    const room = Math.max(0, maxCalls - this.#calls);
    this.#calls += own;
    if (own > room) this.#spent = `the limit of ${maxCalls} tool calls`;
    const repeated = this.#repeats.refuse(calls);
    if (repeated !== undefined && ++this.#refusedRounds > maxRefusedRounds)
      return stop("the limit of equal calls in a row");
    if (this.#isLate()) this.#spent = `the limit of ${maxSeconds} seconds`;
    const late = `Error: not run: ${this.#spent} is reached. Answer now with what you have.`;
    return { kind: "run", room, refusal: this.#isLate() ? late : repeated };
  }

  /** What the round's outputs go on with: the last round's say that it was the last. */
  close(outputs: ToolOutput[]): ToolOutput[] {
    const isLast = this.#round === this.#limits.maxRounds;
    this.#round += 1;
    if (!isLast) return outputs;
    const notice = `[The limit of ${this.#limits.maxRounds} rounds of tool calls is reached. No more tools can be called: answer now with what you have.]`;
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

function stop(limit: string): Verdict {
  return { kind: "stop", message: `[Stopped: ${limit} is reached.]` };
}
