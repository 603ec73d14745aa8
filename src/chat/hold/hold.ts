/** A round that waits for the results of its calls. It is extended with the known results, and answered once. */

import type { ExtendOptions } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import type { ToolCall, ToolOutput } from "../types.ts";
import type { Continuation, ContinueRequest, Continuer } from "./continuation.ts";

/** `full`: no result fits, even if it is cut, or no token is left for an answer. `released`: the caller ended it. */
export type HoldAnswer = Continuation | "full" | "cancelled" | "released";

export interface KnownOutput {
  output: ToolOutput;
  /** False: more output follows. */
  isWhole: boolean;
}

export interface HoldOptions {
  continuer: Continuer;
  request: Omit<ContinueRequest, "outputs">;
  calls: readonly ToolCall[];
  /** By call id; it may change between two calls of `extend`. */
  known: ReadonlyMap<string, KnownOutput>;
  onExtend(options: ExtendOptions): void;
  /** The template cannot show an incomplete result. */
  onNoPlace(): void;
  onError(error: unknown): void;
}

/** The hold is extended again after this many new characters, or this share of the text. */
const MIN_CHARACTERS = 128;
const MIN_PART = 1 / 16;

export class ChatHold {
  /** The result of the first `resume`, `release` or cancel. */
  readonly answered: Promise<HoldAnswer>;
  readonly #options: HoldOptions;
  #resolve: (answer: HoldAnswer) => void = () => {};
  #isOpen = true;
  /** The state of the last extension: characters, and complete results. */
  #characters = -Infinity;
  #wholeCount = 0;
  #isExtending = false;
  #canExtend: boolean;

  constructor(options: HoldOptions) {
    this.#options = options;
    this.#canExtend = !options.request.round.endsEarly;
    this.answered = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** False after the answer, and while a resume is prepared. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  answer(answer: HoldAnswer): void {
    this.#isOpen = false;
    this.#resolve(answer);
  }

  /**
   * Results are cut to what fits. @returns whether one was
   * @throws FermataError invalid_value (a call has no output) | template_error
   */
  async resume(
    outputs: readonly ToolOutput[],
    limits: Pick<ContinueRequest, "maxTokens" | "say" | "sayIfCut">,
  ): Promise<boolean> {
    const { calls, continuer, request } = this.#options;
    const ordered = calls.map((call) => {
      const output = outputs.find((candidate) => candidate.callId === call.id);
      if (output === undefined)
        throw new FermataError("invalid_value", `The call ${call.id} has no output.`);
      return output;
    });
    this.#isOpen = false;
    // Sub-agents may have used up the tokens.
    const continuation =
      limits.maxTokens === 0
        ? null
        : await continuer.continue({ ...request, ...limits, outputs: ordered });
    this.answer(continuation ?? "full");
    return (continuation?.truncatedCount ?? 0) > 0;
  }

  /** Call it when more output is known. Returns at once and extends in the background, one state at a time. */
  extend(): void {
    if (this.#isExtending || !this.#canExtend || !this.#isOpen) return;
    const known = this.#known();
    const open = known.findIndex(({ isWhole }) => !isWhole);
    // When all results are complete, the resume follows at once.
    if (open < 0) return;
    const characters = known
      .slice(0, open + 1)
      .reduce((sum, { output }) => sum + output.content.length, 0);
    const least = Math.max(MIN_CHARACTERS, characters * MIN_PART);
    if (open === this.#wholeCount && characters - this.#characters < least) return;
    this.#characters = characters;
    this.#wholeCount = open;
    this.#isExtending = true;
    void this.#extendBy(known, open);
  }

  /** In the order of the calls. */
  #known(): KnownOutput[] {
    const { calls, known } = this.#options;
    return calls.map(
      ({ id, name }) =>
        known.get(id) ?? { output: { callId: id, name, content: "" }, isWhole: false },
    );
  }

  async #extendBy(known: readonly KnownOutput[], open: number): Promise<void> {
    const { continuer, request, onExtend, onNoPlace, onError } = this.#options;
    try {
      // The tools start first; results that are ready at once need no extension.
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#isOpen) return;
      const outputs = known.map(({ output }) => output);
      const beginning = await continuer.begin({ ...request, outputs }, open);
      if (!this.#isOpen) return;
      if (beginning === "no_place" || beginning === "full") {
        this.#canExtend = false;
        if (beginning === "no_place") onNoPlace();
      } else if (beginning.tokens.length > 0) onExtend(beginning);
    } catch (error) {
      this.#canExtend = false;
      onError(error);
    }
    this.#isExtending = false;
    this.extend();
  }
}
