/** What the engine is at, for people who watch it. */

import type { EngineState } from "../../client/types.ts";
import type { ServerServices } from "../services.ts";

const windowMs = 2000;
const sampleMs = 100;

export class EngineMeter {
  readonly #services: Pick<ServerServices, "engine" | "model">;
  readonly #now: () => number;
  /** Of steps within the window, the oldest first. */
  #samples: { atMs: number; generated: number }[] = [];

  constructor(
    services: Pick<ServerServices, "engine" | "model">,
    now: () => number = () => performance.now(),
  ) {
    this.#services = services;
    this.#now = now;
    services.engine.onStep(() => this.#sample());
  }

  read(): EngineState {
    const { engine, model } = this.#services;
    const stats = engine.stats();
    const fresh = stats.promptTokens + stats.resumedTokens - stats.cachedTokens;
    return {
      model: { id: model.id, context_size: model.contextSize },
      sequences: { running: stats.running, waiting: stats.waiting, held: stats.held },
      kv_cells: { used: stats.cellsUsed, retained: stats.cellsRetained, free: stats.cellsFree },
      kv_ram: { sequences: stats.ramSequences, used: stats.ramBytes, limit: stats.ramLimit },
      kv_disk: { sequences: stats.diskFiles, used: stats.diskBytes, limit: stats.diskLimit },
      tokens_per_second: this.#rate(stats.generatedTokens),
      prefilled_tokens: stats.prefilledTokens,
      new_tokens: stats.generatedTokens,
      re_prefill_ratio: fresh <= 0 ? 1 : stats.prefilledTokens / fresh,
    };
  }

  #sample(): void {
    const atMs = this.#now();
    const last = this.#samples.at(-1);
    if (last !== undefined && atMs - last.atMs < sampleMs) return;
    this.#forgetBefore(atMs - windowMs);
    this.#samples.push({ atMs, generated: this.#services.engine.stats().generatedTokens });
  }

  #rate(generated: number): number {
    const atMs = this.#now();
    this.#forgetBefore(atMs - windowMs);
    const [first] = this.#samples;
    if (first === undefined) return 0;
    const seconds = Math.max(sampleMs, atMs - first.atMs) / 1000;
    return Math.round(((generated - first.generated) / seconds) * 10) / 10;
  }

  #forgetBefore(atMs: number): void {
    this.#samples = this.#samples.filter((sample) => sample.atMs >= atMs);
  }
}
