/** The texts that an expression matches, but for some, as an expression. */

import type { Count } from "../steps.ts";
import { automatonOf, first, last } from "./automaton.ts";
import { closed, expressionOf, kindsOfCharacters, placesAfter, tooLarge } from "./deterministic.ts";
import type { Regex } from "./parse.ts";
import type { Range } from "./sets.ts";
import { type Trie, trieOf } from "./write.ts";

const most = { states: 1000, size: 10_000 };
/** What is written is nested as deep as a text is long, and the mask engine refuses what is nested a hundred deep. */
const maxLength = 40;

interface Place {
  /** Of the expression's automaton. */
  places: readonly number[];
  /** Where the text is the beginning of some of those that are left out. */
  node: Trie | undefined;
}

/** @returns null where nothing is left. @throws RegexError, to follow "the pattern" */
export function withoutTexts(regex: Regex, texts: readonly string[], count: Count): Regex | null {
  if (texts.some(({ length }) => length > maxLength)) throw tooLarge();
  const states = automatonOf(regex, count);
  const ids = new Map<Trie, number>();
  const idOf = (node: Trie): number => {
    if (!ids.has(node)) ids.set(node, ids.size);
    return ids.get(node)!;
  };
  // The texts' beginnings are many, the places that the expression may be in there few.
  const same = new Map<string, readonly number[]>();
  const known = new Map<readonly number[], Map<number, readonly number[]>>();
  const after = (places: readonly number[], character: number): readonly number[] => {
    count(1);
    const steps = known.get(places) ?? new Map<number, readonly number[]>();
    known.set(places, steps);
    let next = steps.get(character);
    if (next !== undefined) return next;
    const reached = placesAfter(states, places, character, count);
    // Once it has matched, whatever follows.
    const found = reached.includes(last) ? [last] : reached;
    const key = found.join();
    next = same.get(key) ?? found;
    same.set(key, next);
    steps.set(character, next);
    return next;
  };
  const machine = {
    start: { places: closed(states, [first], { start: true, end: false }), node: trieOf(texts) },
    keyOf: ({ places, node }: Place) => {
      count(1 + places.length);
      return `${places.join()} ${node === undefined ? "" : idOf(node)}`;
    },
    after: ({ places, node }: Place, [character, to]: Range): Place | null => {
      const next = after(places, character);
      if (next.length === 0) return null;
      const letter = character === to ? String.fromCodePoint(character) : "";
      return { places: next, node: node?.next.get(letter) };
    },
    isEnd: ({ places, node }: Place, isStart: boolean) =>
      node?.isEnd !== true && closed(states, places, { start: isStart, end: true }).includes(last),
  };
  const kinds = kindsOfCharacters(states, new Set(texts.join("")));
  return expressionOf(machine, kinds, most, count);
}
