/** The spans of one sequence, made from the engine's events. A state machine with a clock. */

import type { EngineUsage, SequenceEvent, SequenceWatcher } from "../../engine/types.ts";
import type { TracePhase, TraceRows, TraceSequence, TraceSpan } from "../../client/types.ts";

/** More spans are counted and not kept. */
const maxSpans = 512;

export const noRows: Readonly<TraceRows> = {
  prompt: 0,
  cached: 0,
  resumed: 0,
  prefilled: 0,
  recomputed: 0,
  generated: 0,
};

/** The trace that a sequence belongs to; null: it is another owner's, or is not kept. */
export type TraceOf = (watcher: SequenceWatcher) => string | null;

export class SequenceTrace {
  readonly #agent: string | null;
  readonly #now: () => number;
  readonly #traceOf: TraceOf;
  readonly #spans: TraceSpan[] = [];
  #rows: TraceRows = noRows;
  #end: string | null = null;
  #wasHeld = false;
  dropped = 0;

  /** @param now milliseconds since the request came */
  constructor(agent: string | null, now: () => number, traceOf: TraceOf) {
    this.#agent = agent;
    this.#now = now;
    this.#traceOf = traceOf;
  }

  get rows(): TraceRows {
    return this.#rows;
  }

  /** Before it is submitted. @param since the request came */
  prepare(sinceMs: number): void {
    this.#spans.push({ phase: "prepare", start_ms: sinceMs, end_ms: null });
  }

  accept(event: SequenceEvent): void {
    switch (event.type) {
      case "submitted":
        return this.#enter("queued", { waits_for: null });
      case "waiting":
        return this.#enter(
          "queued",
          {
            waits_for: event.reason,
            ...(event.behind === null ? {} : { behind: this.#traceOf(event.behind) }),
          },
          event.ago,
        );
      case "admitted": {
        const { total: rows, reused, source, ago } = event;
        return this.#enter(this.#wasHeld ? "resume" : "prefill", { rows, reused, source }, ago);
      }
      case "decode":
        return this.#enter("decode");
      case "hold":
        this.#count(event.usage);
        this.#wasHeld = true;
        return this.#enter("hold", { rows: 0 });
      case "extended":
        return this.#extend(event.done);
      case "resume":
        return this.#enter("queued", { waits_for: null });
      case "end":
        if (event.usage !== null) this.#count(event.usage);
        this.#end = event.reason;
        return this.#close();
    }
  }

  wire(): TraceSequence {
    return {
      agent: this.#agent,
      spans: this.#spans.map((span) => ({ ...span })),
      rows: this.#rows,
      end: this.#end,
    };
  }

  /** The span before ends. @param ago milliseconds since then, but not before the span before began */
  #enter(phase: TracePhase, details: Partial<TraceSpan> = {}, ago = 0): void {
    const last = this.#spans.at(-1);
    const now = Math.max(last?.start_ms ?? 0, microseconds(this.#now() - ago));
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

  #close(): void {
    const last = this.#spans.at(-1);
    if (last !== undefined && last.end_ms === null) last.end_ms = this.#now();
  }

  #count(usage: EngineUsage): void {
    this.#rows = {
      prompt: usage.promptTokens,
      cached: usage.cachedTokens,
      resumed: usage.resumedTokens,
      prefilled: usage.prefilledTokens,
      recomputed: usage.recomputedTokens,
      generated: usage.generatedTokens,
    };
  }
}

/** With three digits behind the point: what is short is still longer than nothing. */
export function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

export function addRows(one: TraceRows, other: TraceRows): TraceRows {
  return {
    prompt: one.prompt + other.prompt,
    cached: one.cached + other.cached,
    resumed: one.resumed + other.resumed,
    prefilled: one.prefilled + other.prefilled,
    recomputed: one.recomputed + other.recomputed,
    generated: one.generated + other.generated,
  };
}
