/** Notices a model that makes the same calls over and over, as small models do when a result does not please them. */

import { canonicalArguments } from "../chat/normalize.ts";
import type { ToolCall } from "../chat/types.ts";

/** Rounds of equal calls that are run: a tool may be polled, and an error may be transient. */
const MAX_EQUAL_ROUNDS = 3;

export class RepeatGuard {
  #last = "";
  #count = 0;

  /** To be asked once a round. @returns what the model is told instead of results, or undefined: run them */
  refuse(calls: readonly ToolCall[]): string | undefined {
    const key = JSON.stringify(
      calls.map((call) => [call.name, canonicalArguments(call.arguments)]),
    );
    this.#count = key === this.#last ? this.#count + 1 : 1;
    this.#last = key;
    if (this.#count <= MAX_EQUAL_ROUNDS) return undefined;
    return `Error: not run: the same call was made ${this.#count} times in a row, and its results are above. Do something else, or answer with what you have.`;
  }
}
