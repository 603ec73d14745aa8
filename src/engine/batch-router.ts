import type { FermataError } from "../errors.ts";
import type { NativeBatch } from "../native/addon-types.ts";
import type { EngineGeneration } from "./generation.ts";
import { TokenIntervals } from "./token-intervals.ts";
import type { EngineStep } from "./types.ts";

export type StepListener = (step: EngineStep) => void;
export type TokenIntervalListener = (milliseconds: number) => void;

/** Takes the addon's batches apart: each event to its generation, each step to all listeners. */
export class BatchRouter {
  readonly #generations = new Map<number, EngineGeneration>();
  readonly #stepListeners = new Set<StepListener>();
  readonly #intervals = new TokenIntervals();
  readonly #intervalListeners = new Set<TokenIntervalListener>();

  /** Routes events to `generation` until its last one. */
  add(generation: EngineGeneration): void {
    this.#generations.set(generation.id, generation);
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
      this.#generations.get(event.id)?.accept(event);
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
  }
}
