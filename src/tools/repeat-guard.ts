/** Notices a model that makes the same calls over and over, as small models do when a result does not please them. */

import { canonicalArguments } from "../chat/template/normalize.ts";
import type { ToolCall, ToolOutput } from "../chat/types.ts";

/** Rounds of equal calls that are run: a tool may be polled, and an error may be transient. */
const MAX_EQUAL_ROUNDS = 3;
/** Where the results were equal, too: another one would be no news. */
const MAX_EQUAL_RESULTS = 2;

export class RepeatGuard {
  #last: string[] = [];
  /** Rounds in a row with these calls. */
  #count = 0;
  /** By a round's calls: what they came to last. */
  readonly #known = new Map<string, string>();
  #isStale = false;
  #isRefused = false;

  /** Call it once per round. @returns text for the model instead of results; undefined: run the calls */
  refuse(calls: readonly ToolCall[]): string | undefined {
    const keys = calls.map(keyOf);
    const isEqual = keys.length === this.#last.length && this.#begins(keys);
    this.#count = isEqual ? this.#count + 1 : 1;
    this.#last = keys;
    this.#isRefused = this.#count > this.#most;
    if (!this.#isRefused) return undefined;
    return `Error: not run: the same call was made ${this.#count} times in a row, and its results are above. Do something else, or answer with what you have.`;
  }

  /** A round that begins with these calls may be refused when it is whole. */
  mayRefuse(calls: readonly ToolCall[]): boolean {
    return this.#count >= this.#most && this.#begins(calls.map(keyOf));
  }

  /** The last round brought nothing new: it was refused, or its calls had the same results before in this answer. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** Equal calls in a row bring nothing new: only without tools does such a model answer. */
  get isStuck(): boolean {
    return this.#isStale && this.#count > 1;
  }

  /** What the round's calls came to. */
  learn(outputs: readonly ToolOutput[]): void {
    const calls = JSON.stringify(this.#last);
    const results = JSON.stringify(outputs.map(({ content }) => content));
    this.#isStale = this.#isRefused || this.#known.get(calls) === results;
    if (!this.#isRefused) this.#known.set(calls, results);
  }

  get #most(): number {
    return this.isStuck ? MAX_EQUAL_RESULTS : MAX_EQUAL_ROUNDS;
  }

  /** The last round begins with these. */
  #begins(keys: readonly string[]): boolean {
    return keys.every((key, index) => key === this.#last[index]);
  }
}

function keyOf({ name, arguments: text }: ToolCall): string {
  return JSON.stringify([name, canonicalArguments(text)]);
}
