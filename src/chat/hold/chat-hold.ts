/** A round that waits for the results of its calls. */

import { FermataError } from "../../errors.ts";
import type { Continuation } from "./continuation.ts";
import type { ToolCall, ToolOutput } from "../types.ts";

/** `full`: no result fits, not even cut, or no token is left for an answer. `released`: the caller ends here. */
export type HoldAnswer = Continuation | "full" | "cancelled" | "released";

/** Answered once, by `resume`, `release` or a cancel; the first answer counts. */
export class ChatHold {
  readonly calls: readonly ToolCall[];
  readonly pendingToken: boolean;
  readonly answered: Promise<HoldAnswer>;
  #isOpen = true;
  #resolve: (answer: HoldAnswer) => void = () => {};

  constructor(calls: readonly ToolCall[], pendingToken: boolean) {
    this.calls = calls;
    this.pendingToken = pendingToken;
    this.answered = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** False once it was answered, or a resume is at work. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  answer(answer: HoldAnswer): void {
    this.#isOpen = false;
    this.#resolve(answer);
  }

  /** A resume begins. @returns one output for each call, in their order @throws FermataError invalid_value */
  take(outputs: readonly ToolOutput[]): ToolOutput[] {
    const ordered = this.calls.map((call) => {
      const output = outputs.find((candidate) => candidate.callId === call.id);
      if (output === undefined)
        throw new FermataError("invalid_value", `The call ${call.id} has no output.`);
      return output;
    });
    this.#isOpen = false;
    return ordered;
  }
}
