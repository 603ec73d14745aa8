/** How large the automaton is that the mask engine comes to build where one text is held to several expressions. */

import type { Count } from "../steps.ts";
import { type AutomatonState, automatonOf, first, last, lookupsIn, setsOf } from "./automaton.ts";
import { type CharacterSet, rangesOf } from "./sets.ts";
import type { Regex } from "./parse.ts";

/** Of one expression, while a text is read: the states that its automaton may be in, from which it can still match. */
interface Places {
  /** Equal ones are the same. */
  id: number;
  states: readonly number[];
  /** By character, once they were looked at. */
  next: readonly Places[] | null;
}

/** One expression alone. */
class Reader {
  readonly start: Places;
  readonly #states: readonly AutomatonState[];
  /** From there it may still match, once the text has begun. */
  readonly #live: ReadonlySet<number>;
  readonly #characters: readonly number[];
  readonly #count: Count;
  readonly #known = new Map<string, Places>();
  /** For each character. */
  readonly #members = new Map<CharacterSet, readonly boolean[]>();

  constructor(states: readonly AutomatonState[], characters: readonly number[], count: Count) {
    this.#states = states;
    this.#live = liveStates(states);
    this.#characters = characters;
    this.#count = count;
    this.start = this.#places(closed(states, [first], true, count));
  }

  /** By character. */
  after(places: Places): readonly Places[] {
    places.next ??= this.#characters.map((_, character) => this.#step(places, character));
    return places.next;
  }

  #step({ states }: Places, character: number): Places {
    const reached = new Set<number>();
    for (const place of states) {
      const { steps } = this.#states[place]!;
      this.#count(1 + steps.length);
      for (const { set, to } of steps) if (this.#membersOf(set)[character]!) reached.add(to);
    }
    const all = closed(this.#states, [...reached], false, this.#count);
    const live = all.filter((place) => this.#live.has(place));
    // Once it has matched, whatever follows.
    return this.#places(live.includes(last) ? [last] : live);
  }

  #places(states: readonly number[]): Places {
    const key = states.join();
    let places = this.#known.get(key);
    if (places === undefined) {
      places = { id: this.#known.size, states, next: null };
      this.#known.set(key, places);
    }
    return places;
  }

  #membersOf(set: CharacterSet): readonly boolean[] {
    let members = this.#members.get(set);
    if (members === undefined) {
      this.#count(this.#characters.length * lookupsIn(set));
      const ranges = rangesOf(set);
      members = this.#characters.map((character) =>
        ranges.some(([from, end]) => character >= from && character <= end),
      );
      this.#members.set(set, members);
    }
    return members;
  }
}

/**
 * @param count may throw, and does where it takes too long to tell
 * @returns whether its states are at most so many
 */
export function isSmallTogether(
  regexes: readonly Regex[],
  mostStates: number,
  count: Count,
): boolean {
  const automata = regexes.map((regex) => automatonOf(regex, count));
  const characters = representatives(automata.flat());
  const readers = automata.map((states) => new Reader(states, characters, count));
  const start = readers.map((reader) => reader.start);
  const seen = new Set([keyOf(start)]);
  const open: Places[][] = [start];
  for (let places = open.pop(); places !== undefined; places = open.pop()) {
    const next = readers.map((reader, index) => reader.after(places![index]!));
    count(characters.length * readers.length);
    characters.forEach((_, index) => {
      const reached = next.map((each) => each[index]!);
      if (reached.some(({ states }) => states.length === 0)) return;
      const key = keyOf(reached);
      if (!seen.has(key)) open.push(reached);
      seen.add(key);
    });
    if (seen.size > mostStates) return false;
  }
  return true;
}

function keyOf(places: readonly Places[]): string {
  return places.map(({ id }) => id).join();
}

/** One of each kind of characters that no expression tells apart. */
function representatives(states: readonly AutomatonState[]): number[] {
  const edges = new Set([0]);
  for (const set of setsOf(states))
    for (const [from, to] of rangesOf(set)) edges.add(from).add(to + 1);
  return [...edges];
}

function closed(
  states: readonly AutomatonState[],
  places: readonly number[],
  isStart: boolean,
  count: Count,
): readonly number[] {
  const reached = new Set(places);
  for (const place of reached) {
    const { jumps } = states[place]!;
    count(1 + jumps.length);
    for (const { to, at } of jumps) if (at === null || (at === "start" && isStart)) reached.add(to);
  }
  return [...reached].toSorted((a, b) => a - b);
}

function liveStates(states: readonly AutomatonState[]): ReadonlySet<number> {
  const before: number[][] = states.map(() => []);
  states.forEach(({ steps, jumps }, from) => {
    for (const { to } of steps) before[to]!.push(from);
    for (const { to, at } of jumps) if (at !== "start") before[to]!.push(from);
  });
  const live = new Set([last]);
  for (const state of live) for (const from of before[state]!) live.add(from);
  return live;
}
