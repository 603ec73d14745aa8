/** A deterministic automaton as an expression: what the mask engine has no word for ("not", "but not") is written so. */

import type { Count } from "../steps.ts";
import { type AutomatonState, lookupsIn, setsOf } from "./automaton.ts";
import { type Range, merge, rangesOf } from "./sets.ts";
import { type Regex, RegexError } from "./parse.ts";

/** Its states are made as they are reached. */
export interface Machine<State> {
  start: State;
  /** Equal for states that are the same. It counts what it takes. */
  keyOf(state: State): string;
  /** @returns null where no text can go on */
  after(state: State, kind: Range): State | null;
  isEnd(state: State, isStart: boolean): boolean;
}

interface Limits {
  states: number;
  /** Of the expression. */
  size: number;
}

/** Lookups for each that is made. */
const perWay = 10;

/** Ways from one state to another; absent: none. */
type Ways = Map<number, Regex>;

/**
 * @param kinds characters that it does not tell apart
 * @returns of whole texts; null: it takes none
 * @throws RegexError too large
 */
export function expressionOf<State>(
  machine: Machine<State>,
  kinds: readonly Range[],
  most: Limits,
  count: Count,
): Regex | null {
  const { start } = machine;
  const isSame = machine.isEnd(start, true) === machine.isEnd(start, false);
  const known = new Map(isSame ? [[machine.keyOf(start), 0]] : []);
  const all: State[] = [start];
  const ways: Ways[] = [];
  for (let index = 0; index < all.length; index++) {
    const to = new Map<number, Range[]>();
    for (const kind of kinds) {
      const next = machine.after(all[index]!, kind);
      if (next === null) continue;
      const key = machine.keyOf(next);
      if (!known.has(key)) {
        known.set(key, all.length);
        all.push(next);
        if (all.length > most.states) throw tooLarge();
      }
      const target = known.get(key)!;
      const ranges = to.get(target);
      if (ranges === undefined) to.set(target, [kind]);
      else ranges.push(kind);
    }
    ways.push(new Map([...to].map(([target, ranges]) => [target, setOf(ranges)])));
  }
  const ends = all.map((state, index) => machine.isEnd(state, index === 0));
  const written = withoutStates(ways, ends, most.size, count);
  if (written === undefined) return null;
  return { kind: "concat", parts: [{ kind: "start" }, written, { kind: "end" }] };
}

export function tooLarge(): RegexError {
  return new RegexError("excludes too much");
}

/** Without counted repetitions, and each part once: what is written is made of what was written before. */
function sizesOf(): (regex: Regex) => number {
  const known = new Map<Regex, number>();
  const measure = (regex: Regex): number => {
    if (regex.kind === "repeat") return measure(regex.body);
    if (regex.kind !== "concat" && regex.kind !== "or") return 1;
    let size = known.get(regex);
    if (size === undefined) {
      const parts = regex.kind === "or" ? regex.options : regex.parts;
      size = parts.reduce((sum, part) => sum + measure(part), 0);
      known.set(regex, size);
    }
    return size;
  };
  return measure;
}

/** Takes one state after the other out, until only ways from the start to the end are left. */
function withoutStates(
  ways: Ways[],
  ends: readonly boolean[],
  maxSize: number,
  count: Count,
): Regex | undefined {
  const end = ways.length;
  const measure = sizesOf();
  ways.forEach((to, index) => {
    if (ends[index] === true) to.set(end, { kind: "empty" });
  });
  for (let out = end - 1; out >= 0; out--) {
    const from = ways[out]!;
    const loop = from.get(out);
    from.delete(out);
    count(ways.length);
    for (const to of ways) {
      const before = to.get(out);
      if (to === from || before === undefined) continue;
      to.delete(out);
      for (const [target, behind] of from) {
        const way = inRow(before, loop === undefined ? [] : [repeated(loop)], behind);
        to.set(target, either(to.get(target), way, count));
        if (measure(to.get(target)!) > maxSize) throw tooLarge();
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

function either(one: Regex | undefined, other: Regex, count: Count): Regex {
  count(perWay);
  if (one === undefined) return other;
  if (one.kind === "set" && other.kind === "set") return setOf([...one.ranges, ...other.ranges]);
  const options = one.kind === "or" ? one.options : [one];
  // It is copied, and measured.
  count(2 * options.length);
  return { kind: "or", options: [...options, other] };
}

function setOf(ranges: readonly Range[]): Regex {
  return { kind: "set", ranges: merge(ranges), properties: [], negated: false };
}

/**
 * Ranges of characters that an expression does not tell apart.
 * @param letters that are told apart all the same
 */
export function kindsOfCharacters(
  states: readonly AutomatonState[],
  letters: Iterable<string> = [],
): Range[] {
  const edges = new Set([0]);
  for (const set of setsOf(states)) {
    if (set.properties.length > 0) throw new RegexError("excludes a Unicode property");
    for (const [from, to] of rangesOf(set)) edges.add(from).add(to + 1);
  }
  for (const letter of letters) edges.add(letter.codePointAt(0)!).add(letter.codePointAt(0)! + 1);
  const sorted = [...edges].filter((edge) => edge <= 0x10ffff).toSorted((a, b) => a - b);
  return sorted.map((edge, index) => [edge, (sorted[index + 1] ?? 0x110000) - 1]);
}

/** Where an automaton is after a character, from all of these places. */
export function placesAfter(
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

/** And where it is without any. */
export function closed(
  states: readonly AutomatonState[],
  places: readonly number[],
  at: { start: boolean; end: boolean },
): number[] {
  const reached = new Set(places);
  for (const place of reached)
    for (const jump of states[place]!.jumps)
      if (jump.at === null || (typeof jump.at === "string" && at[jump.at])) reached.add(jump.to);
  return [...reached].toSorted((a, b) => a - b);
}
