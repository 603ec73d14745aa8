/**
 * Times of one answer: to its first token, and to the first one after tool results, for the metrics; and of reading and
 * writing, for clients that know llama-server's `timings`.
 */

import type { Histogram } from "prom-client";
import type { EngineUsage } from "../../engine/types.ts";
import type { Metrics } from "../metrics.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { TimesWanted } from "../body/generation.ts";

/** llama-server's. What was waited for tools is in none of them; what was waited for a place in the engine is read time. */
export interface Timings {
  /** Tokens that were found in the cache. */
  cache_n: number;
  prompt_n: number;
  prompt_ms: number;
  prompt_per_token_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_token_ms: number;
  predicted_per_second: number;
}

/** llama-server's: of `total` tokens, `processed` are in the cache, and `cache` were from the beginning. */
export interface PromptProgress {
  total: number;
  cache: number;
  processed: number;
  time_ms: number;
}

type Progress = Extract<RunEvent, { type: "progress" }>;

/** What an event has of it. */
export interface ToldProgress {
  prompt_progress: PromptProgress;
  timings?: Timings;
}

export class TokenTimes {
  readonly #metrics: Metrics;
  #histogram: Histogram | null;
  #since: number;
  /** Since when what goes on now does. */
  #phaseSince: number;
  #isReading = true;
  #isMeasured = false;
  #readingMs = 0;
  #writingMs = 0;
  #cached: number | null = null;
  /** In earlier rounds, and in this one. */
  #read = 0;
  #reading = 0;
  #drawn = 0;
  /** Tokens behind the first of each round, which comes with the reading. */
  #written = 0;
  #toldStart = false;

  /** @param startedAt on `performance.now()`'s clock */
  constructor(metrics: Metrics, startedAt: number) {
    this.#metrics = metrics;
    this.#histogram = metrics.firstToken;
    this.#since = startedAt;
    this.#phaseSince = startedAt;
  }

  observe(event: RunEvent): void {
    const now = performance.now();
    if (event.type === "tool-end") {
      this.#histogram = this.#metrics.resumeFirstToken;
      this.#since = now;
    } else if (event.type === "progress") {
      this.#cached ??= event.cached;
      this.#reading = event.done;
    } else if (event.type === "finish") {
      this.end(event.usage);
    } else if (carriesToken(event.type)) {
      this.#histogram?.observe((now - this.#since) / 1000);
      this.#histogram = null;
    }
  }

  /** As `ChatRequest.onTokens`. */
  readonly drew = (count: number): void => {
    const now = performance.now();
    this.#isMeasured = true;
    const isStart = count === this.#drawn;
    if (isStart) {
      this.#read += this.#reading;
      this.#reading = 0;
      this.#toldStart = false;
    } else if (this.#isReading) this.#readingMs += now - this.#phaseSince;
    else {
      this.#writingMs += now - this.#phaseSince;
      this.#written += count - this.#drawn;
    }
    this.#isReading = isStart;
    this.#phaseSince = now;
    this.#drawn = count;
  };

  /** The engine's counts are exact. */
  end({ promptTokens, resumedTokens, cachedTokens, generatedTokens }: EngineUsage): void {
    this.#readingMs = this.#readMs();
    this.#isReading = false;
    this.#cached = cachedTokens;
    this.#read = Math.max(0, promptTokens + resumedTokens - cachedTokens);
    this.#reading = 0;
    this.#drawn = generatedTokens;
  }

  /** So far. Undefined: an agent's endpoint answers, and nobody told when. */
  get timings(): Timings | undefined {
    if (!this.#isMeasured) return undefined;
    const read = this.#read + this.#reading;
    return {
      cache_n: this.#cached ?? 0,
      prompt_n: read,
      ...paceOf("prompt", read, this.#readMs()),
      predicted_n: this.#drawn,
      ...paceOf("predicted", this.#written, this.#writingMs),
    };
  }

  /** What is being read now included. */
  #readMs(): number {
    return this.#readingMs + (this.#isReading ? performance.now() - this.#phaseSince : 0);
  }

  /** As llama-server tells it: at first what the cache had, and that nothing was read. */
  progress({ done, total, cached }: Progress, { perToken }: TimesWanted): ToldProgress[] {
    const whole = { total: cached + total, cache: cached };
    const time_ms = Math.round(performance.now() - this.#phaseSince);
    const { timings } = this;
    const now = perToken && timings !== undefined ? { timings } : {};
    const read = { prompt_progress: { ...whole, processed: cached + done, time_ms }, ...now };
    if (this.#toldStart) return [read];
    this.#toldStart = true;
    const before = { prompt_n: this.#read, ...paceOf("prompt", this.#read, this.#readingMs) };
    const start = { prompt_progress: { ...whole, processed: cached, time_ms: 0 } };
    return [
      { ...start, ...(timings && perToken ? { timings: { ...timings, ...before } } : {}) },
      read,
    ];
  }
}

type Pace<Name extends string> = Record<
  `${Name}_ms` | `${Name}_per_token_ms` | `${Name}_per_second`,
  number
>;

function paceOf<const Name extends string>(
  name: Name,
  count: number,
  milliseconds: number,
): Pace<Name> {
  return {
    [`${name}_ms`]: milliseconds,
    [`${name}_per_token_ms`]: count === 0 ? 0 : milliseconds / count,
    [`${name}_per_second`]: milliseconds === 0 ? 0 : (count * 1000) / milliseconds,
  } as Pace<Name>;
}

function carriesToken(type: RunEvent["type"]): boolean {
  return (
    type === "content" || type === "reasoning" || type === "call-start" || type === "call-arguments"
  );
}
