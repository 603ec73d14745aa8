/** The addon's batches: each event to its generation, each step and token interval to who listens. */

import type { FermataError } from "../errors.ts";
import type { NativeBatch, NativeEvent } from "../native/addon-types.ts";
import type { EngineGeneration } from "./generation.ts";
import type { EngineStep } from "./types.ts";

export type StepListener = (step: EngineStep) => void;
export type TokenIntervalListener = (milliseconds: number) => void;

/** Takes the addon's batches apart: each event to its generation, each step to all listeners. */
export class BatchRouter {
  readonly #generations = new Map<number, EngineGeneration>();
  readonly #unstarted = new Set<number>();
  #onStart: (generation: EngineGeneration) => void = () => {};
  readonly #stepListeners = new Set<StepListener>();
  readonly #intervals = new TokenIntervals();
  readonly #intervalListeners = new Set<TokenIntervalListener>();

  /** Routes events of `id` to `generation` until the last one. */
  add(id: number, generation: EngineGeneration): void {
    this.#generations.set(id, generation);
    this.#unstarted.add(id);
  }

  /** Calls `listener` before the first event of each generation. */
  onStart(listener: (generation: EngineGeneration) => void): void {
    this.#onStart = listener;
  }

  /** Returns what removes the listener. */
  onStep(listener: StepListener): () => void {
    this.#stepListeners.add(listener);
    return () => this.#stepListeners.delete(listener);
  }

  /** Returns what removes the listener. */
  onTokenInterval(listener: TokenIntervalListener): () => void {
    this.#intervalListeners.add(listener);
    return () => this.#intervalListeners.delete(listener);
  }

  /** Nobody is told of steps and times any more. */
  mute(): void {
    this.#stepListeners.clear();
    this.#intervalListeners.clear();
  }

  accept({ events, steps }: NativeBatch): void {
    for (const event of events) {
      const interval = this.#intervals.next(event);
      if (interval !== undefined)
        for (const listener of this.#intervalListeners) listener(interval);
      const generation = this.#generations.get(event.id);
      const starts = event.kind !== "waiting" && this.#unstarted.delete(event.id);
      if (starts && generation !== undefined) this.#onStart(generation);
      if (event.kind === "waiting") {
        const behind = this.#generations.get(event.behind);
        generation?.wait(event.reason, { behind, ago: event.ago });
      } else generation?.accept(event);
      if (event.kind === "finished" || event.kind === "failed") this.#generations.delete(event.id);
    }
    for (const step of steps) {
      for (const listener of this.#stepListeners) listener(step);
    }
  }

  /** Ends the generations that are left. */
  failAll(error: FermataError): void {
    for (const generation of this.#generations.values()) generation.fail(error);
    this.#generations.clear();
    this.#unstarted.clear();
  }
}

function isBetweenTokens(kind: NativeEvent["kind"]): boolean {
  return (
    kind === "progress" ||
    kind === "prompt_logprobs" ||
    kind === "tool_call_ready" ||
    kind === "waiting" ||
    kind === "admitted"
  );
}

/**
 * The time between two tokens of one generation, by the clock of the inference thread. A hold is no such
 * time: the first token after it begins anew.
 */
class TokenIntervals {
  readonly #lastAt = new Map<number, number>();

  /** Milliseconds since the generation's last token; undefined if there is none, or this is no token. */
  next(event: NativeEvent): number | undefined {
    if (isBetweenTokens(event.kind)) return undefined;
    if (event.kind !== "tokens") {
      this.#lastAt.delete(event.id);
      return undefined;
    }
    const last = this.#lastAt.get(event.id);
    this.#lastAt.set(event.id, event.at);
    return last === undefined ? undefined : event.at - last;
  }
}
