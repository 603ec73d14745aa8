/**
 * An expression as a non-deterministic automaton. Nothing backtracks: the time of a match grows with expression times
 * text, and a comparison is a bounded search.
 */

import { type Count, uncounted } from "../steps.ts";
import { type Look, type Regex, sizeOf } from "./parse.ts";
import { type CharacterSet, type Range, rangesOf } from "./sets.ts";

/** Longer texts are not matched here: names of properties and constants are short. */
export const maxMatchLength = 1000;

/** Of comparisons. */
const maxCompared = { states: 1500, pairs: 50_000 };

/** Lookups for each. */
const perPair = 10;
const perState = 20;

export interface AutomatonState {
  /** Over a character. */
  steps: { set: CharacterSet; to: number }[];
  /** Over none; some only at the text's start or end, or where something is seen. */
  jumps: { to: number; at: "start" | "end" | Look | null }[];
}

export const first = 0;
export const last = 1;
const anyCharacter: CharacterSet = { kind: "set", ranges: [], properties: [], negated: true };
const automata = new WeakMap<Regex, AutomatonState[]>();
const shared = new WeakSet<Regex>();

/** Of several schemas: each counts the automaton where it reads the expression, not only the one that has it built. */
export function share(regex: Regex, count: Count): void {
  count(sizeOf(regex) * perState);
  shared.add(regex);
}

/** @returns whether `regex` matches somewhere in `text` */
export function matches(regex: Regex, text: string, count: Count = uncounted): boolean {
  const states = automatonOf(regex, count);
  const characters = Array.from(text);
  const closed = (open: number[], position: number): Set<number> => {
    const reached = new Set(open);
    for (const state of reached) {
      const { jumps } = states[state]!;
      count(1 + jumps.length);
      for (const { to, at } of jumps) {
        const isAllowed = at === null || position === (at === "start" ? 0 : characters.length);
        if (isAllowed) reached.add(to);
      }
    }
    return reached;
  };
  let reached = closed([first], 0);
  characters.forEach((character, index) => {
    const next: number[] = [];
    for (const state of reached)
      for (const { set, to } of states[state]!.steps) {
        count(lookupsIn(set));
        if (isIn(set, character)) next.push(to);
      }
    reached = closed(next, index + 1);
  });
  return reached.has(last);
}

interface Comparison {
  isDisjoint: boolean;
  lookups: number;
}

const comparisons = new WeakMap<Regex, WeakMap<Regex, Comparison>>();

/** Is there no text that both match? @returns false also where it cannot be told */
export function areDisjoint(a: Regex, b: Regex, count: Count): boolean {
  const known = comparisons.get(a) ?? new WeakMap<Regex, Comparison>();
  comparisons.set(a, known);
  let comparison = known.get(b);
  if (comparison === undefined) {
    let lookups = 0;
    const isDisjoint = compare(a, b, (taken) => {
      lookups += taken;
      count(taken);
    });
    comparison = { isDisjoint, lookups };
    known.set(b, comparison);
  } else count(comparison.lookups);
  return comparison.isDisjoint;
}

function compare(a: Regex, b: Regex, count: Count): boolean {
  const one = automatonOf(a, count);
  const other = automatonOf(b, count);
  if (Math.max(one.length, other.length) > maxCompared.states) return false;
  const seen = new Set<number>();
  // Of the same text: where both are, whether it has begun, and whether it has ended.
  const open: [x: number, y: number, isStart: boolean, isEnd: boolean][] = [
    [first, first, true, false],
  ];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [x, y, isStart, isEnd] = pair;
    count(perPair);
    const key = (x * other.length + y) * 4 + Number(isStart) * 2 + Number(isEnd);
    if (seen.has(key)) continue;
    seen.add(key);
    if (seen.size > maxCompared.pairs || (x === last && y === last)) return false;
    const isAllowed = ({ at }: AutomatonState["jumps"][number]): boolean =>
      at === null || (at === "start" ? isStart : isEnd);
    for (const jump of one[x]!.jumps) if (isAllowed(jump)) open.push([jump.to, y, isStart, isEnd]);
    for (const jump of other[y]!.jumps)
      if (isAllowed(jump)) open.push([x, jump.to, isStart, isEnd]);
    if (isEnd) continue;
    open.push([x, y, isStart, true]);
    for (const step of one[x]!.steps)
      for (const { set, to } of other[y]!.steps) {
        count(lookupsIn(step.set) * lookupsIn(set));
        if (overlap(rangesOf(step.set), rangesOf(set))) open.push([step.to, to, false, false]);
      }
  }
  return true;
}

/** Of all texts in which the expression matches somewhere. Its size is bounded by `parseRegex`. */
export function automatonOf(regex: Regex, count: Count): AutomatonState[] {
  const known = automata.get(regex);
  if (known !== undefined) return known;
  const isCounted = shared.has(regex);
  const states = statesOf(regex, { before: true, after: true }, isCounted ? uncounted : count);
  automata.set(regex, states);
  return states;
}

/** Of the expression alone, or with any text before or after it. */
export function statesOf(
  regex: Regex,
  anything: { before: boolean; after: boolean },
  count: Count,
): AutomatonState[] {
  count(sizeOf(regex) * perState);
  const states: AutomatonState[] = [];
  const add = (): number => states.push({ steps: [], jumps: [] }) - 1;
  const jump = (
    from: number,
    to: number,
    at: AutomatonState["jumps"][number]["at"] = null,
  ): void => {
    states[from]!.jumps.push({ to, at });
  };
  const build = (part: Regex, from: number, to: number): void => {
    switch (part.kind) {
      case "empty":
        return jump(from, to);
      case "start":
      case "end":
        return jump(from, to, part.kind);
      case "look":
        return jump(from, to, part);
      case "set":
        states[from]!.steps.push({ set: part, to });
        return;
      case "or":
        for (const option of part.options) build(option, from, to);
        return;
      case "concat":
        return jump(part.parts.reduce(buildNext, from), to);
      case "repeat":
        return buildRepeat(part, from, to);
    }
  };
  const buildNext = (from: number, part: Regex): number => {
    const next = add();
    build(part, from, next);
    return next;
  };
  const buildRepeat = (
    { body, min, max }: Extract<Regex, { kind: "repeat" }>,
    from: number,
    to: number,
  ): void => {
    let at = from;
    for (let count = 0; count < min; count++) at = buildNext(at, body);
    if (max === Infinity) {
      const loop = add();
      jump(at, loop);
      build(body, loop, loop);
      at = loop;
    }
    jump(at, to);
    for (let count = min; count < max && max < Infinity; count++) {
      at = buildNext(at, body);
      jump(at, to);
    }
  };
  add();
  add();
  if (anything.before) states[first]!.steps.push({ set: anyCharacter, to: first });
  if (anything.after) states[last]!.steps.push({ set: anyCharacter, to: last });
  build(regex, first, last);
  return states;
}

/** For whether a character is in it, or what it has. */
export function lookupsIn({ ranges, properties }: CharacterSet): number {
  return 1 + ranges.length + properties.length * 20;
}

function isIn({ ranges, properties, negated }: CharacterSet, character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  const isListed =
    ranges.some(([from, to]) => code >= from && code <= to) ||
    properties.some((name) => hasProperty(name, character));
  return isListed !== negated;
}

function hasProperty(name: string, character: string): boolean {
  try {
    return new RegExp(`^\\p{${name}}$`, "u").test(character);
  } catch {
    return false;
  }
}

/** Each once: a repetition's states share theirs. */
export function setsOf(states: readonly AutomatonState[]): ReadonlySet<CharacterSet> {
  return new Set(states.flatMap(({ steps }) => steps.map(({ set }) => set)));
}

function overlap(a: readonly Range[], b: readonly Range[]): boolean {
  return a.some(([from, to]) => b.some(([start, end]) => from <= end && start <= to));
}
