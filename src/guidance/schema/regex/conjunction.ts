/** How large the automaton is that the mask engine comes to build where one text is held to several expressions. */

import { type AutomatonState, automatonOf, first, last, rangesOf } from "./automaton.ts";
import type { Regex } from "./parse.ts";

/** More is not tried: places of one automaton, each over each character. */
const maxTried = 200_000;

/** Of one expression, while a text is read: the states that its automaton may be in, from which it can still match. */
type Places = readonly number[];

/** One expression alone. */
class Reader {
  readonly start: Places;
  readonly #states: readonly AutomatonState[];
  /** From there it may still match, once the text has begun. */
  readonly #live: ReadonlySet<number>;
  readonly #characters: readonly number[];
  readonly #known = new Map<Places, Places[]>();
  /** Equal places are the same array. */
  readonly #places = new Map<string, Places>();
  tried = 0;

  constructor(states: readonly AutomatonState[], characters: readonly number[]) {
    this.#states = states;
    this.#live = liveStates(states);
    this.#characters = characters;
    this.start = closed(states, [first], true);
  }

  /** By character. */
  after(places: Places): readonly Places[] {
    let next = this.#known.get(places);
    if (next === undefined) {
      this.tried += places.length * this.#characters.length;
      next = this.#characters.map((character) => this.#step(places, character));
      this.#known.set(places, next);
    }
    return next;
  }

  #step(places: Places, character: number): Places {
    const reached = new Set<number>();
    for (const place of places)
      for (const { set, to } of this.#states[place]!.steps)
        if (rangesOf(set).some(([from, end]) => character >= from && character <= end))
          reached.add(to);
    const live = closed(this.#states, [...reached], false).filter((place) => this.#live.has(place));
    // Once it has matched, whatever follows.
    const next = live.includes(last) ? [last] : live;
    const key = next.join();
    const same = this.#places.get(key) ?? next;
    this.#places.set(key, same);
    return same;
  }
}

/** @returns whether its states are at most so many; false also where it takes long to tell */
export function isSmallTogether(regexes: readonly Regex[], mostStates: number): boolean {
  const automata = regexes.map(automatonOf);
  const characters = representatives(automata.flat());
  const readers = automata.map((states) => new Reader(states, characters));
  const start = readers.map((reader) => reader.start);
  const seen = new Set([keyOf(start)]);
  const open: Places[][] = [start];
  for (let places = open.pop(); places !== undefined; places = open.pop()) {
    const next = readers.map((reader, index) => reader.after(places![index]!));
    if (readers.reduce((sum, { tried }) => sum + tried, 0) > maxTried) return false;
    characters.forEach((_, index) => {
      const reached = next.map((each) => each[index]!);
      if (reached.some((each) => each.length === 0)) return;
      const key = keyOf(reached);
      if (!seen.has(key)) open.push(reached);
      seen.add(key);
    });
    if (seen.size > mostStates) return false;
  }
  return true;
}

function keyOf(places: readonly Places[]): string {
  return places.map((each) => each.join()).join(";");
}

/** One of each kind of characters that no expression tells apart. */
function representatives(states: readonly AutomatonState[]): number[] {
  const edges = new Set([0]);
  for (const { steps } of states)
    for (const { set } of steps)
      for (const [from, to] of rangesOf(set)) edges.add(from).add(to + 1);
  return [...edges];
}

function closed(
  states: readonly AutomatonState[],
  places: Places,
  isStart: boolean,
): readonly number[] {
  const reached = new Set(places);
  for (const place of reached)
    for (const { to, at } of states[place]!.jumps)
      if (at === null || (at === "start" && isStart)) reached.add(to);
  return [...reached].toSorted((a, b) => a - b);
}

function liveStates(states: readonly AutomatonState[]): ReadonlySet<number> {
  const before = new Map<number, number[]>();
  states.forEach(({ steps, jumps }, from) => {
    const targets = [...steps, ...jumps.filter(({ at }) => at !== "start")];
    for (const { to } of targets) before.set(to, [...(before.get(to) ?? []), from]);
  });
  const live = new Set([last]);
  for (const state of live) for (const from of before.get(state) ?? []) live.add(from);
  return live;
}
