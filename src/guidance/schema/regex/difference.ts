/** The texts that some expressions match and others do not, but for some texts, as an expression. */

import type { Count } from "../steps.ts";
import { type AutomatonState, automatonOf, first, last } from "./automaton.ts";
import { closed, expressionOf, kindsOfCharacters, placesAfter, tooLarge } from "./deterministic.ts";
import type { Regex } from "./parse.ts";
import type { Range } from "./sets.ts";
import { type Trie, trieOf } from "./write.ts";

const most = { states: 1000, size: 10_000 };
/** Of several expressions that may match the same text. */
const mostTogether = { states: 100, size: 1000, regions: 16 };
/** What is written is nested as deep as a text is long, and the mask engine refuses what is nested a hundred deep. */
const maxLength = 40;

/** Where each automaton may be; equal ones are the same. */
type Places = readonly number[];

/** All automata of some expressions at once. */
class Product {
  readonly states: readonly (readonly AutomatonState[])[];
  readonly start: readonly Places[];
  readonly count: Count;
  // The texts' beginnings are many, the places that an expression may be in there few.
  readonly #same = new Map<string, Places>();
  readonly #known = new Map<Places, Map<number, Places>>();

  constructor(regexes: readonly Regex[], count: Count) {
    this.count = count;
    this.states = regexes.map((regex) => automatonOf(regex, count));
    this.start = this.states.map((states, index) =>
      this.#unique(index, closed(states, [first], { start: true, end: false })),
    );
  }

  keyOf(places: readonly Places[]): string {
    return places.map((each, index) => `${index}:${each.join()}`).join(" ");
  }

  after(places: readonly Places[], character: number): readonly Places[] {
    return places.map((each, index) => {
      this.count(1);
      const steps = this.#known.get(each) ?? new Map<number, Places>();
      this.#known.set(each, steps);
      let next = steps.get(character);
      if (next === undefined) {
        const reached = placesAfter(this.states[index]!, each, character, this.count);
        // Once it has matched, whatever follows.
        next = this.#unique(index, reached.includes(last) ? [last] : reached);
        steps.set(character, next);
      }
      return next;
    });
  }

  /** Which of them match the text that ends here. */
  matchedAt(places: readonly Places[], isStart: boolean): boolean[] {
    const at = { start: isStart, end: true };
    return places.map((each, index) => closed(this.states[index]!, each, at).includes(last));
  }

  #unique(index: number, places: Places): Places {
    const key = `${index}:${places.join()}`;
    const same = this.#same.get(key) ?? places;
    this.#same.set(key, same);
    return same;
  }
}

export interface Region {
  regex: Regex;
  /** Which of the expressions match its texts: at least one. */
  matched: readonly boolean[];
}

/**
 * Expressions that may match the same text as ones of which no two do. @throws RegexError too large, to follow "the
 * pattern"
 */
export function regionsOf(
  regexes: readonly Regex[],
  texts: readonly string[],
  count: Count,
): Region[] {
  const limits = regexes.length === 1 ? most : mostTogether;
  const product = new Product(regexes, count);
  return combinationsOf(product).flatMap((matched) => {
    const regex = matchedAs(product, matched, texts, limits);
    return regex === null ? [] : [{ regex, matched }];
  });
}

/** Which of them match the same text, for all texts that one of them matches. */
function combinationsOf(product: Product): boolean[][] {
  if (product.states.length === 1) return [[true]];
  const kinds = kindsOfCharacters(product.states.flat());
  const found = new Map<string, boolean[]>();
  const known = new Set<string>();
  const open = [product.start];
  for (let places = open.pop(); places !== undefined; places = open.pop()) {
    const matched = product.matchedAt(places, places === product.start);
    if (matched.includes(true)) found.set(matched.join(), matched);
    if (found.size > mostTogether.regions) throw tooLarge();
    for (const [character] of kinds) {
      const next = product.after(places, character);
      const key = product.keyOf(next);
      if (known.has(key)) continue;
      known.add(key);
      if (known.size > mostTogether.states) throw tooLarge();
      open.push(next);
    }
  }
  return [...found.values()];
}

interface Place {
  places: readonly Places[];
  /** Where the text is the beginning of some of those that are left out. */
  node: Trie | undefined;
}

function matchedAs(
  product: Product,
  matched: readonly boolean[],
  texts: readonly string[],
  limits: { states: number; size: number },
): Regex | null {
  if (texts.some(({ length }) => length > maxLength)) throw tooLarge();
  const { count } = product;
  const ids = new Map<Trie, number>();
  const idOf = (node: Trie): number => {
    if (!ids.has(node)) ids.set(node, ids.size);
    return ids.get(node)!;
  };
  const needed = matched.flatMap((isMatched, index) => (isMatched ? [index] : []));
  const machine = {
    start: { places: product.start, node: trieOf(texts) },
    keyOf: ({ places, node }: Place) => {
      count(1 + places.reduce((sum, each) => sum + each.length, 0));
      return `${product.keyOf(places)} ${node === undefined ? "" : idOf(node)}`;
    },
    after: ({ places, node }: Place, [character, to]: Range): Place | null => {
      const next = product.after(places, character);
      const isLost =
        needed.some((index) => next[index]!.length === 0) ||
        // It has matched what it must not.
        next.some((each, index) => !matched[index]! && each.length === 1 && each[0] === last);
      if (isLost) return null;
      const letter = character === to ? String.fromCodePoint(character) : "";
      return { places: next, node: node?.next.get(letter) };
    },
    isEnd: ({ places, node }: Place, isStart: boolean) =>
      node?.isEnd !== true &&
      product.matchedAt(places, isStart).every((isMatched, index) => isMatched === matched[index]),
  };
  const kinds = kindsOfCharacters(product.states.flat(), new Set(texts.join("")));
  return expressionOf(machine, kinds, limits, count);
}
