/** The texts that an expression does not match, as an expression. */

import type { Count } from "../steps.ts";
import { automatonOf, first, last } from "./automaton.ts";
import { closed, expressionOf, kindsOfCharacters, placesAfter, tooLarge } from "./deterministic.ts";
import type { Regex } from "./parse.ts";

/** Of the deterministic automaton, and of what is written of it. */
const most = { states: 40, size: 2000 };
/** Of several expressions together, as of a language's keywords. */
export const mostTogether = { states: 400, size: 4000 };
/** Longer is not looked for it. */
const maxLookups = 1_000_000;

/** @returns null where it matches every text. @throws RegexError, to follow "the pattern" */
export function complementOf(regex: Regex, countAll: Count, limits = most): Regex | null {
  let lookups = 0;
  const count: Count = (taken) => {
    lookups += taken;
    if (lookups > maxLookups) throw tooLarge();
    countAll(taken);
  };
  const states = automatonOf(regex, count);
  const machine = {
    start: closed(states, [first], { start: true, end: false }),
    keyOf: (places: readonly number[]) => {
      count(places.length);
      return places.join();
    },
    after: (places: readonly number[], [character]: readonly [number, number]) => {
      const next = placesAfter(states, places, character, count);
      // Once it has matched, whatever follows.
      return next.includes(last) ? null : next;
    },
    isEnd: (places: readonly number[], isStart: boolean) =>
      !closed(states, places, { start: isStart, end: true }).includes(last),
  };
  return expressionOf(machine, kindsOfCharacters(states), limits, count);
}
