/** Notices a round that goes in circles: greedy small models write the same calls over and over. */

import { parseExactJson } from "../../json.ts";
import { canonicalArguments } from "../template/normalize.ts";
import type { ToolCall } from "../types.ts";

/** Two equal calls may be meant, as two throws of a die. A third hardly is. */
const maxEqual = 2;

type Call = Pick<ToolCall, "name" | "arguments">;

export class RepeatedCalls {
  /** The round's calls by what they say. */
  readonly #made = new Map<string, Call[]>();
  /** Those that were made as often as they may be. */
  readonly #spent: Call[] = [];
  /** Of these: what the call that is being written may turn out to be. */
  #candidates: Call[] = [];
  /** Characters of its arguments so far. */
  #length = 0;

  /** A call begins. @returns whether it may become one too many */
  begin(name: string): boolean {
    this.#length = 0;
    this.#candidates = this.#spent.filter((call) => call.name === name);
    return this.#candidates.length > 0;
  }

  /** Its arguments go on. @returns whether it may still become one too many */
  continue(delta: string): boolean {
    const at = this.#length;
    this.#length += delta.length;
    this.#candidates = this.#candidates.filter((call) => call.arguments.startsWith(delta, at));
    return this.#candidates.length > 0;
  }

  /** The call has ended. @returns whether it is one too many; spaces and the order of keys do not count */
  end(call: Call): boolean {
    const key = JSON.stringify([call.name, canonicalArguments(call.arguments, parseExactJson)]);
    const equal = this.#made.get(key) ?? [];
    if (equal.length >= maxEqual) return true;
    equal.push(call);
    this.#made.set(key, equal);
    if (equal.length === maxEqual) this.#spent.push(...equal);
    return false;
  }
}
