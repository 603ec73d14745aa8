/** How large the automaton is that the mask engine comes to build where one text is held to several expressions. */

import { type AutomatonState, automatonOf, first, last, rangesOf } from "./automaton.ts";
import type { Regex } from "./parse.ts";

/** More is not tried: places of the automata, each over each character. */
const maxTried = 200_000;

/** Of one expression, while a text is read: the states that its automaton may be in, from which it can still match. */
type Places = readonly number[];

interface Reader {
  states: readonly AutomatonState[];
  /** From there it may still match, once the text has begun. */
  live: ReadonlySet<number>;
}

/** @returns whether its states are at most so many; false also where it takes long to tell */
export function isSmallTogether(regexes: readonly Regex[], mostStates: number): boolean {
  const readers = regexes.map((regex): Reader => {
    const states = automatonOf(regex);
    return { states, live: liveStates(states) };
  });
  const characters = representatives(readers.flatMap(({ states }) => states));
  let tried = 0;
  const start = readers.map(({ states }) => closed(states, [first], true));
  const seen = new Set([keyOf(start)]);
  const open: Places[][] = [start];
  for (let places = open.pop(); places !== undefined; places = open.pop()) {
    tried += characters.length * places.reduce((sum, each) => sum + each.length, 0);
    if (tried > maxTried) return false;
    for (const character of characters) {
      const next = readers.map((reader, index) => after(reader, places[index]!, character));
      const key = keyOf(next);
      if (seen.has(key) || next.some((each) => each.length === 0)) continue;
      seen.add(key);
      if (seen.size > mostStates) return false;
      open.push(next);
    }
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

function after({ states, live }: Reader, places: Places, character: number): Places {
  const reached = new Set<number>();
  for (const place of places)
    for (const { set, to } of states[place]!.steps)
      if (rangesOf(set).some(([from, end]) => character >= from && character <= end))
        reached.add(to);
  const all = closed(states, [...reached], false).filter((place) => live.has(place));
  // Once it has matched, whatever follows.
  return all.includes(last) ? [last] : all;
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
