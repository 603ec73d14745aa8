/** The traces of the last answers of each owner, in memory. */

import type { Trace } from "../../client/types.ts";
import type { SequenceWatcher } from "../../engine/types.ts";
import { toFermataError } from "../http/error-replies.ts";
import { AnswerTrace, type TraceStart } from "./answer-trace.ts";

/** Of one owner. */
const maxOfOwner = 64;
const maxInAll = 1024;

export class Traces {
  /** The oldest first. */
  readonly #all = new Set<AnswerTrace>();
  readonly #byWatcher = new WeakMap<SequenceWatcher, AnswerTrace>();

  /** Traces `work`. Several at a time with the same id are parts of one answer. @throws what `work` throws */
  async record<Result>(
    start: TraceStart,
    work: (trace: AnswerTrace) => Promise<Result>,
  ): Promise<Result> {
    const trace = this.begin(start);
    try {
      const result = await work(trace);
      trace.end();
      return result;
    } catch (error) {
      trace.end(toFermataError(error).code === "cancelled" ? "cancelled" : "failed");
      throw error;
    }
  }

  /** `end` of the trace must follow each call. */
  begin(start: TraceStart): AnswerTrace {
    const same = this.#find(start.owner, start.id);
    const trace = same?.isRunning === true ? same : this.#add(start);
    trace.begin();
    return trace;
  }

  /** The newest first. */
  list(owner: string, limit: number): Trace[] {
    return this.#of(owner)
      .slice(-limit)
      .reverse()
      .map((trace) => trace.wire());
  }

  /** By the id of the answer, else of its request. */
  find(owner: string, id: string): Trace | null {
    const ofRequest = this.#of(owner).findLast(({ start }) => start.requestId === id);
    return (this.#find(owner, id) ?? ofRequest)?.wire() ?? null;
  }

  #add(start: TraceStart): AnswerTrace {
    const { owner } = start;
    const own = this.#of(owner);
    if (own.length >= maxOfOwner) this.#all.delete(oldest(own));
    if (this.#all.size >= maxInAll) this.#all.delete(oldest([...this.#all]));
    const traceOf = (watcher: SequenceWatcher): string | null => {
      const other = this.#byWatcher.get(watcher)?.start;
      return other?.owner === owner ? other.id : null;
    };
    const trace: AnswerTrace = new AnswerTrace(start, traceOf, (watcher) =>
      this.#byWatcher.set(watcher, trace),
    );
    this.#all.add(trace);
    return trace;
  }

  #of(owner: string): AnswerTrace[] {
    return [...this.#all].filter(({ start }) => start.owner === owner);
  }

  #find(owner: string, id: string): AnswerTrace | undefined {
    return this.#of(owner).findLast(({ start }) => start.id === id);
  }
}

/** Of those that have ended, if any has. */
function oldest(traces: readonly AnswerTrace[]): AnswerTrace {
  return traces.find(({ isRunning }) => !isRunning) ?? traces[0]!;
}
