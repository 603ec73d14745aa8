/** What a run does at the moment, as its stream tells it: a phase is told once, when it begins. */

import type { Detail, Phase } from "../../client/types.ts";
import type { RunEvent } from "../../tools/types.ts";

type PhaseDetail = Extract<Detail, { type: "phase" }>;

export class RunPhases {
  #phase: Phase | null;
  /** The round was written, and its calls run. */
  #isHeld: boolean;

  /** @param earlier where the stream of an earlier process ended */
  constructor(earlier: { phase: Phase | null; isHeld: boolean } = { phase: null, isHeld: false }) {
    this.#phase = earlier.phase;
    this.#isHeld = earlier.isHeld;
  }

  /** The first phase. */
  queued(): PhaseDetail[] {
    return this.#enter("queued", 0);
  }

  /**
   * The phase that an event of the run itself begins, or none.
   * @param atMs since the start of the run
   * @param idOf the id in the stream of a call
   * @param openCalls of the run itself, before the event
   */
  begunBy(
    event: RunEvent,
    atMs: number,
    { idOf, openCalls }: { idOf(given: string): string; openCalls(): number },
  ): PhaseDetail[] {
    switch (event.type) {
      case "progress":
        return this.#enter("prefill", atMs, { tokens: event.total });
      case "content":
      case "reasoning":
      case "call-start":
      case "call-arguments":
        this.#isHeld = false;
        return this.#enter("decode", atMs);
      case "hold":
        this.#isHeld = true;
        return this.#enter("hold", atMs, { tokens: event.usage.generatedTokens });
      case "tool-start":
        // Each call is told, also beside another.
        this.#phase = null;
        return this.#enter("tool", atMs, { call_id: idOf(event.call.id) });
      case "tool-end":
        return this.#isHeld && openCalls() <= 1 ? this.#enter("resume", atMs) : [];
      default:
        return [];
    }
  }

  #enter(phase: Phase, atMs: number, facts: Partial<PhaseDetail> = {}): PhaseDetail[] {
    if (phase === this.#phase) return [];
    this.#phase = phase;
    return [{ type: "phase", phase, at_ms: Math.round(atMs), ...facts }];
  }
}
