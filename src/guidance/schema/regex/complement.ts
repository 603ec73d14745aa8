/** The texts that an expression does not match, as an expression: the mask engine has no word for "not". */

import type { Count } from "../steps.ts";
import {
  type AutomatonState,
  automatonOf,
  first,
  last,
  lookupsIn,
  rangesOf,
  setsOf,
} from "./automaton.ts";
import { type Range, type Regex, RegexError, sizeOf } from "./parse.ts";

/** Of the deterministic automaton, and of what is written of it. */
const most = { states: 12, size: 2000 };
/** Longer is not looked for it. */
const maxLookups = 1_000_000;

/** Ways from one state to another; absent: none. */
type Ways = Map<number, Regex>;

/** @throws RegexError, to follow "the pattern" */
export function complementOf(regex: Regex, countAll: Count): Regex {
  let lookups = 0;
  const count: Count = (taken) => {
    lookups += taken;
    if (lookups > maxLookups) throw tooLarge();
    countAll(taken);
  };
  const states = automatonOf(regex, count);
  const kinds = kindsOfCharacters(states);
  const start = closed(states, [first], { start: true, end: false });
  const known = new Map([[start.join(), 0]]);
  const all: number[][] = [start];
  const ways: Ways[] = [];
  for (let index = 0; index < all.length; index++) {
    const to: Ways = new Map();
    for (const kind of kinds) {
      const next = after(states, all[index]!, kind[0], count);
      // Once it has matched, whatever follows.
      if (next.includes(last)) continue;
      const key = next.join();
      if (!known.has(key)) {
        known.set(key, all.length);
        all.push(next);
        if (all.length > most.states) throw tooLarge();
      }
      const target = known.get(key)!;
      to.set(target, either(to.get(target), setOf([kind])));
    }
    ways.push(to);
  }
  const ends = all.map(
    (places, index) => !closed(states, places, { start: index === 0, end: true }).includes(last),
  );
  const written = withoutStates(ways, ends);
  if (written === undefined || sizeOf(written) > most.size) throw tooLarge();
  return { kind: "concat", parts: [{ kind: "start" }, written, { kind: "end" }] };
}

function tooLarge(): RegexError {
  return new RegexError("looks ahead at too much");
}

/** Takes one state after the other out, until only ways from the start to the end are left. */
function withoutStates(ways: Ways[], ends: readonly boolean[]): Regex | undefined {
  const end = ways.length;
  ways.forEach((to, index) => {
    if (ends[index] === true) to.set(end, { kind: "empty" });
  });
  for (let out = end - 1; out >= 0; out--) {
    const from = ways[out]!;
    const loop = from.get(out);
    from.delete(out);
    for (const to of ways) {
      const before = to.get(out);
      if (to === from || before === undefined) continue;
      to.delete(out);
      for (const [target, behind] of from) {
        const way = inRow(before, loop === undefined ? [] : [repeated(loop)], behind);
        to.set(target, either(to.get(target), way));
        if (sizeOf(to.get(target)!) > most.size) throw tooLarge();
      }
    }
    if (out === 0) {
      const way = from.get(end);
      return way && inRow({ kind: "empty" }, loop === undefined ? [] : [repeated(loop)], way);
    }
  }
  return undefined;
}

function inRow(before: Regex, between: Regex[], behind: Regex): Regex {
  const parts = [before, ...between, behind].filter(({ kind }) => kind !== "empty");
  if (parts.length === 0) return { kind: "empty" };
  return parts.length === 1 ? parts[0]! : { kind: "concat", parts };
}

function repeated(body: Regex): Regex {
  return { kind: "repeat", body, min: 0, max: Infinity };
}

function either(one: Regex | undefined, other: Regex): Regex {
  if (one === undefined) return other;
  if (one.kind === "set" && other.kind === "set") return setOf([...one.ranges, ...other.ranges]);
  const options = one.kind === "or" ? one.options : [one];
  return { kind: "or", options: [...options, other] };
}

function setOf(ranges: readonly Range[]): Regex {
  return { kind: "set", ranges, properties: [], negated: false };
}

/** Ranges of characters that the expression does not tell apart. */
function kindsOfCharacters(states: readonly AutomatonState[]): Range[] {
  const edges = new Set([0]);
  for (const set of setsOf(states)) {
    if (set.properties.length > 0) throw new RegexError("looks ahead at a Unicode property");
    for (const [from, to] of rangesOf(set)) edges.add(from).add(to + 1);
  }
  const sorted = [...edges].filter((edge) => edge <= 0x10ffff).toSorted((a, b) => a - b);
  return sorted.map((edge, index) => [edge, (sorted[index + 1] ?? 0x110000) - 1]);
}

function after(
  states: readonly AutomatonState[],
  places: readonly number[],
  character: number,
  count: Count,
): number[] {
  const reached = new Set<number>();
  for (const place of places)
    for (const { set, to } of states[place]!.steps) {
      count(lookupsIn(set));
      if (rangesOf(set).some(([from, end]) => character >= from && character <= end))
        reached.add(to);
    }
  const next = closed(states, [...reached], { start: false, end: false });
  count(next.length);
  return next;
}

function closed(
  states: readonly AutomatonState[],
  places: readonly number[],
  at: { start: boolean; end: boolean },
): number[] {
  const reached = new Set(places);
  for (const place of reached)
    for (const jump of states[place]!.jumps)
      if (jump.at === null || at[jump.at]) reached.add(jump.to);
  return [...reached].toSorted((a, b) => a - b);
}
