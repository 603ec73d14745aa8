/** Prefills what is known of a round's results while its sequence is held. */

import type { ExtendOptions } from "../../engine/types.ts";
import type { ContinueRequest, Continuer } from "./continuation.ts";
import type { ToolCall, ToolOutput } from "../types.ts";

export interface KnownOutput {
  output: ToolOutput;
  /** Else more will follow it. */
  isWhole: boolean;
}

export interface HoldExtensionOptions {
  continuer: Continuer;
  request: Omit<ContinueRequest, "outputs">;
  calls: readonly ToolCall[];
  /** By call id; it may change between two calls of `update`. */
  results: ReadonlyMap<string, KnownOutput>;
  extend(options: ExtendOptions): void;
  /** The template has no place for a result that is not whole. */
  onNoPlace(): void;
  onError(error: unknown): void;
}

/** To render and tokenize is worth so many more characters, or this part of what there is. */
const MIN_CHARACTERS = 128;
const MIN_PART = 1 / 16;

export class HoldExtension {
  readonly #options: HoldExtensionOptions;
  #characters = -Infinity;
  #wholeCount = 0;
  #isWorking = false;
  #isOver = false;

  constructor(options: HoldExtensionOptions) {
    this.#options = options;
  }

  /** More is known. Returns at once; works on one state at a time. */
  update(): void {
    if (this.#isWorking || this.#isOver) return;
    const known = this.#known();
    const open = known.findIndex(({ isWhole }) => !isWhole);
    // With all of them the resume comes.
    if (open < 0) return;
    const characters = known
      .slice(0, open + 1)
      .reduce((sum, { output }) => sum + output.content.length, 0);
    const least = Math.max(MIN_CHARACTERS, characters * MIN_PART);
    if (open === this.#wholeCount && characters - this.#characters < least) return;
    this.#characters = characters;
    this.#wholeCount = open;
    this.#isWorking = true;
    void this.#extend(known, open);
  }

  /** Nothing is prefilled from now on. */
  stop(): void {
    this.#isOver = true;
  }

  /** In the order of the calls. */
  #known(): KnownOutput[] {
    const { calls, results } = this.#options;
    return calls.map(
      ({ id, name }) =>
        results.get(id) ?? { output: { callId: id, name, content: "" }, isWhole: false },
    );
  }

  async #extend(known: readonly KnownOutput[], open: number): Promise<void> {
    const { continuer, request, extend, onNoPlace, onError } = this.#options;
    try {
      // The tools go first, and those that are done at once need none of this.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#isOver) return;
      const outputs = known.map(({ output }) => output);
      const beginning = await continuer.begin({ ...request, outputs }, open);
      if (this.#isOver) return;
      if (beginning === "no_place" || beginning === "full") {
        this.#isOver = true;
        if (beginning === "no_place") onNoPlace();
      } else if (beginning.tokens.length > 0) extend(beginning);
    } catch (error) {
      this.#isOver = true;
      onError(error);
    }
    this.#isWorking = false;
    this.update();
  }
}
