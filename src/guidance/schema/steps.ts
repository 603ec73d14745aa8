/** What the compilation of one schema may take: counted, not timed, so that a schema becomes the same each time and everywhere. */

import { FermataError } from "../../errors.ts";

/** Looks at one state, character, range or property: so many take as long as looking at one subschema. */
const lookups = 500;
/** In all conjunctions of expressions of one schema. */
const inConjunctions = 1_000_000;

/** Counts lookups. */
export type Count = (lookups: number) => void;

/** Where what it counts for is bounded otherwise. */
export const uncounted: Count = () => {};

export class Steps {
  #left: number;
  #leftInConjunctions = inConjunctions;

  /** @param most subschemas looked at, probes included */
  constructor(most: number) {
    this.#left = most;
  }

  /** @throws FermataError schema_too_large */
  readonly count: Count = (taken) => this.take(taken / lookups);

  /** @throws FermataError schema_too_large */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0)
      throw new FermataError(
        "schema_too_large",
        "The schema combines its parts in too many ways. Send a simpler one.",
      );
  }

  /** @returns whether more may be counted in conjunctions. @throws as `take` */
  countInConjunction(taken: number): boolean {
    this.#leftInConjunctions -= taken;
    this.count(taken);
    return this.#leftInConjunctions >= 0;
  }
}
