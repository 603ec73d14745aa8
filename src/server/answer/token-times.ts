/** Metrics of one answer: the time to its first token, and to the first one after tool results. */

import type { Histogram } from "prom-client";
import type { Metrics } from "../metrics.ts";
import type { RunEvent } from "../../tools/types.ts";

export class TokenTimes {
  readonly #metrics: Metrics;
  #histogram: Histogram | null;
  #since: number;

  /** @param startedAt on `performance.now()`'s clock */
  constructor(metrics: Metrics, startedAt: number) {
    this.#metrics = metrics;
    this.#histogram = metrics.firstToken;
    this.#since = startedAt;
  }

  observe({ type }: RunEvent): void {
    const now = performance.now();
    if (type === "tool-end") {
      this.#histogram = this.#metrics.resumeFirstToken;
      this.#since = now;
    } else if (carriesToken(type)) {
      this.#histogram?.observe((now - this.#since) / 1000);
      this.#histogram = null;
    }
  }
}

function carriesToken(type: RunEvent["type"]): boolean {
  return (
    type === "content" || type === "reasoning" || type === "call-start" || type === "call-arguments"
  );
}
