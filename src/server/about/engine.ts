/** GET /api/engine, and the same as a stream: what the engines are at, the sums of all models in memory. */

import type { Route } from "../route.ts";
import { answer, real, string, whole } from "../body/shapes.ts";
import { setTimeout } from "node:timers/promises";
import type { RouteContext } from "../context.ts";
import { sseTimes } from "../http/stream-answer.ts";
import { SseStream } from "../http/sse.ts";
import type { EngineState } from "../../client/types.ts";
import { loadedModels } from "../answer/model-use.ts";
import type { LoadedModel, ServerServices } from "../services.ts";

const engineState = answer({
  model: answer({ id: string, context_size: whole }),
  sequences: answer({ running: whole, waiting: whole, held: whole }),
  kv_cells: answer({ used: whole, retained: whole, free: whole }),
  kv_ram: answer({ sequences: whole, used: whole, limit: whole }),
  kv_disk: answer({ sequences: whole, used: whole, limit: whole }),
  tokens_per_second: real,
  prefilled_tokens: whole,
  new_tokens: whole,
  re_prefill_ratio: real,
});

export function engineRoute(meter: EngineMeter): Route {
  return {
    at: "GET /api/engine",
    summary: "Sequences, cells and rates of the engine.",
    answer: engineState,
    config: { scope: "admin" },
    logLevel: "warn",
    handler: async () => meter.read(),
  };
}

const periodMs = 500;

/** Twice a second, until the client leaves. */
export function engineStreamRoute(meter: EngineMeter, { config, active }: RouteContext): Route {
  return {
    at: "GET /api/engine/stream",
    summary: "The same as a stream, twice a second.",
    query: { token: string },
    streams: { message: engineState },
    answer: null,
    config: { takesStreamToken: true, scope: "admin" },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const signal = AbortSignal.any([gone.signal, active.closing]);
      const sse = new SseStream(reply, { ...sseTimes(config), isResumable: true });
      while (!signal.aborted) {
        await sse.send({ data: JSON.stringify(meter.read()) });
        await setTimeout(periodMs, undefined, { signal }).catch(() => {});
      }
      sse.end();
      return reply;
    },
  };
}

type Services = Pick<ServerServices, "engine" | "model" | "models">;
type Stats = ReturnType<ServerServices["engine"]["stats"]>;

const windowMs = 2000;
const sampleMs = 100;

export class EngineMeter {
  readonly #services: Services;
  readonly #now: () => number;
  /** Of steps within the window, the oldest first. */
  #samples: { atMs: number; generated: number }[] = [];

  constructor(services: Services, now: () => number = () => performance.now()) {
    this.#services = services;
    this.#now = now;
    const watch = ({ engine }: Pick<LoadedModel, "engine">): unknown =>
      engine.onStep(() => this.#sample());
    loadedModels(services).forEach(watch);
    services.models?.onLoad(watch);
  }

  read(): EngineState {
    const loaded = loadedModels(this.#services);
    const { id } = (loaded[0] ?? this.#services).model;
    const contextSize = loaded[0]?.model.contextSize ?? 0;
    const stats = sumOf(loaded.map(({ engine }) => engine.stats()));
    const fresh = stats.promptTokens + stats.resumedTokens - stats.cachedTokens;
    return {
      // The one that was used last.
      model: { id, context_size: contextSize },
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
    const counts = loadedModels(this.#services).map(({ engine }) => engine.stats());
    const generated = counts.reduce((sum, { generatedTokens }) => sum + generatedTokens, 0);
    this.#samples.push({ atMs, generated });
  }

  #rate(generated: number): number {
    const atMs = this.#now();
    this.#forgetBefore(atMs - windowMs);
    const [first] = this.#samples;
    if (first === undefined) return 0;
    const seconds = Math.max(sampleMs, atMs - first.atMs) / 1000;
    // Those of a model that has left are not counted any more.
    return Math.round((Math.max(0, generated - first.generated) / seconds) * 10) / 10;
  }

  #forgetBefore(atMs: number): void {
    this.#samples = this.#samples.filter((sample) => sample.atMs >= atMs);
  }
}

const counted = [
  "running",
  "waiting",
  "held",
  "cellsUsed",
  "cellsRetained",
  "cellsFree",
  "ramSequences",
  "ramBytes",
  "ramLimit",
  "diskFiles",
  "diskBytes",
  "diskLimit",
  "promptTokens",
  "resumedTokens",
  "cachedTokens",
  "prefilledTokens",
  "generatedTokens",
] as const satisfies (keyof Stats)[];

function sumOf(all: readonly Stats[]): Pick<Stats, (typeof counted)[number]> {
  const sums = counted.map((name) => [name, all.reduce((sum, stats) => sum + stats[name], 0)]);
  return Object.fromEntries(sums) as Pick<Stats, (typeof counted)[number]>;
}
