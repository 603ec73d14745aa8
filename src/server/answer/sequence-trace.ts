/** The spans of one sequence, made from the engine's events when somebody looks: a state machine. */

import { noUsage } from "../../engine/generation.ts";
import type { EngineUsage, SequenceEvent, SequenceWatcher } from "../../engine/types.ts";
import type { TracePhase, TraceRows, TraceSequence, TraceSpan } from "../../client/types.ts";

/** More spans are counted and not kept. */
const maxSpans = 512;

/** The trace that a sequence belongs to; null: it is another owner's, or is not kept. */
export type TraceOf = (watcher: SequenceWatcher) => string | null;

export class SequenceTrace {
  readonly #agent: string | null;
  readonly #traceOf: TraceOf;
  readonly #spans: TraceSpan[] = [];
  #usage: EngineUsage = noUsage;
  #end: string | null = null;
  #wasHeld = false;
  /** Spans that were not kept. */
  dropped = 0;

  /** @param preparedAt milliseconds since the request came, as all times here */
  constructor(agent: string | null, preparedAt: number, traceOf: TraceOf) {
    this.#agent = agent;
    this.#traceOf = traceOf;
    this.#spans.push({ phase: "prepare", start_ms: preparedAt, end_ms: null });
  }

  get usage(): EngineUsage {
    return this.#usage;
  }

  accept(event: SequenceEvent, at: number): void {
    switch (event.type) {
      case "submitted":
        return this.#enter("queued", at, { waits_for: null });
      case "waiting":
        return this.#enter("queued", at - event.ago, {
          waits_for: event.reason,
          ...(event.behind === null ? {} : { behind: this.#traceOf(event.behind) }),
        });
      case "admitted": {
        const { total: rows, reused, source, ago } = event;
        const phase = this.#wasHeld ? "resume" : "prefill";
        return this.#enter(phase, at - ago, { rows, reused, source });
      }
      case "decode":
        return this.#enter("decode", at);
      case "hold":
        this.#usage = event.usage;
        this.#wasHeld = true;
        return this.#enter("hold", at, { rows: 0 });
      case "extended":
        return this.#extend(event.done);
      case "resume":
        return this.#enter("queued", at, { waits_for: null });
      case "end":
        this.#usage = event.usage ?? this.#usage;
        this.#end = event.reason;
        return this.#close(at);
    }
  }

  wire(): TraceSequence {
    return {
      agent: this.#agent,
      spans: this.#spans.map((span) => ({ ...span })),
      rows: rowsOf(this.#usage),
      end: this.#end,
    };
  }

  /** The span before ends. @param at not before that one began */
  #enter(phase: TracePhase, at: number, details: Partial<TraceSpan> = {}): void {
    const last = this.#spans.at(-1);
    const now = Math.max(last?.start_ms ?? 0, microseconds(at));
    if (last !== undefined && last.end_ms === null) last.end_ms = now;
    if (this.#spans.length >= maxSpans) {
      this.dropped += 1;
      return;
    }
    this.#spans.push({ phase, start_ms: now, end_ms: null, ...details });
  }

  #extend(done: number): void {
    const last = this.#spans.at(-1);
    if (last?.phase === "hold") last.rows = done;
  }

  #close(at: number): void {
    const last = this.#spans.at(-1);
    if (last !== undefined && last.end_ms === null) last.end_ms = microseconds(at);
  }
}

/** With three digits behind the point: what is short is still longer than nothing. */
function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

export function rowsOf(usage: EngineUsage): TraceRows {
  return {
    prompt: usage.promptTokens,
    cached: usage.cachedTokens,
    resumed: usage.resumedTokens,
    prefilled: usage.prefilledTokens,
    recomputed: usage.recomputedTokens,
    generated: usage.generatedTokens,
  };
}
