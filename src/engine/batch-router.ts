import type { FermataError } from "../errors.ts";
import type { NativeBatch } from "../native/addon-types.ts";
import type { EngineGeneration } from "./generation.ts";
import type { EngineStep } from "./types.ts";

export type StepListener = (step: EngineStep) => void;

/** Takes the addon's batches apart: each event to its generation, each step to all listeners. */
export class BatchRouter {
  readonly #generations = new Map<number, EngineGeneration>();
  readonly #stepListeners = new Set<StepListener>();

  /** Routes events to `generation` until its last one. */
  add(generation: EngineGeneration): void {
    this.#generations.set(generation.id, generation);
  }

  /** Returns what removes the listener. */
  onStep(listener: StepListener): () => void {
    this.#stepListeners.add(listener);
    return () => this.#stepListeners.delete(listener);
  }

  accept({ events, steps }: NativeBatch): void {
    for (const event of events) {
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
