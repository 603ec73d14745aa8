/** Lengths of texts beside patterns: in few conditions, as the mask engine looks for a text that has all of them. */

import { type CharacterSet, type Range, invert, merge, rangesOf } from "../regex/sets.ts";
import { type Regex, sizeOf } from "../regex/parse.ts";
import { writeWhole } from "../regex/write.ts";

export interface Lengths {
  min: number;
  max: number;
}

interface Patterned {
  source: string;
  regex: Regex;
}

/** In the mask engine's words. */
export interface WrittenConditions extends Lengths {
  patterns: string[];
  /** The least length that is said beside them, where it is less than it should be. */
  shortened: number | null;
}

/**
 * The least length beside patterns, by their number: before it begins, the mask engine looks for a text that has all of
 * them, but not for long. Beside one small pattern of characters of one byte it finds longer ones. Measured.
 */
const mostBeside = { one: 25, few: 20, many: 16, easy: 300, size: 200 };

/** A pattern that says which characters a text has, and how many: what it counts is a length. */
export function withLengthsApart<T extends Patterned>(
  all: readonly T[],
  lengths: Lengths,
): Lengths & { patterns: (T & { whole?: Regex })[] } {
  let { min, max } = lengths;
  const patterns = all.map((pattern) => {
    const counted = countedSet(pattern.regex);
    if (counted === null) return pattern;
    min = Math.max(min, counted.min);
    max = Math.min(max, counted.max);
    const regex = counting(counted.set, 0, Infinity);
    const source = `any number of ${pattern.source}`;
    return { ...pattern, source, regex, whole: pattern.regex };
  });
  const needed = patterns.filter((pattern) => {
    const set = countedSet(pattern.regex)?.set;
    const others = patterns.filter((other) => other !== pattern);
    return (
      set === undefined || !(isEverything(set) || others.some(({ regex }) => hasOnly(regex, set)))
    );
  });
  return { patterns: needed, min, max };
}

/** @throws RegexError */
export function writeConditions(
  regexes: readonly Regex[],
  { min, max }: Lengths,
): WrittenConditions {
  const all = regexes.map(lengthsOf);
  // What a pattern has as its own need not be said again.
  const needed = all.some((each) => each.min >= min) ? 0 : min;
  const most = all.some((each) => each.max <= max) ? Infinity : max;
  const isLimited = needed > 0 || most < Infinity;
  const within = regexes.length === 1 && isLimited ? lengthWithin(regexes[0]!, min, max) : null;
  if (within !== null)
    return { patterns: [writeWhole(within)], min: 0, max: Infinity, shortened: null };
  const patterns = regexes.map(writeWhole);
  const alphabet = isLimited ? alphabetOf(regexes) : null;
  const isEasy =
    alphabet !== null && regexes.length === 1 && sizeOf(regexes[0]!) <= mostBeside.size;
  const least = Math.min(needed, isEasy ? mostBeside.easy : leastBeside(regexes.length));
  const shortened = least < needed ? least : null;
  if (alphabet === null) return { patterns, min: least, max: most, shortened };
  // Of one byte each, characters are counted in fewer steps.
  const set: CharacterSet = { kind: "set", ranges: alphabet, properties: [], negated: false };
  const count = writeWhole(counting(set, least, most));
  return { patterns: [...patterns, count], min: 0, max: Infinity, shortened };
}

function leastBeside(patterns: number): number {
  if (patterns === 0) return Infinity;
  if (patterns === 1) return mostBeside.one;
  return patterns < 4 ? mostBeside.few : mostBeside.many;
}

/** A pattern that has one part of any length, as `^[A-Z].*[.!?]$`: that part has the rest of the length. */
function lengthWithin(regex: Regex, min: number, max: number): Regex | null {
  const parts = regex.kind === "concat" ? [...regex.parts] : [regex];
  if (parts[0]?.kind !== "start") parts.unshift({ kind: "start" }, anyText);
  if (parts.at(-1)?.kind !== "end") parts.push(anyText, { kind: "end" });
  const lengths = parts.map(ownLengths);
  const open = lengths.findIndex((each) => each.min < each.max);
  const part = parts[open];
  const fixed = lengths.reduce((sum, each, index) => sum + (index === open ? 0 : each.min), 0);
  if (part?.kind !== "repeat" || part.body.kind !== "set") return null;
  if (lengths.some((each, index) => index !== open && each.min < each.max)) return null;
  const counted = {
    ...part,
    min: Math.max(part.min, min - fixed),
    max: Math.min(part.max, max - fixed),
  };
  return counted.min > counted.max ? null : { kind: "concat", parts: parts.with(open, counted) };
}

const everything: CharacterSet = { kind: "set", ranges: [], properties: [], negated: true };
const anyText: Regex = { kind: "repeat", body: everything, min: 0, max: Infinity };

function counting(body: CharacterSet, min: number, max: number): Regex {
  const counted: Regex = { kind: "repeat", body, min, max };
  return { kind: "concat", parts: [{ kind: "start" }, counted, { kind: "end" }] };
}

function countedSet(regex: Regex): (Lengths & { set: CharacterSet }) | null {
  if (regex.kind !== "concat" || regex.parts.length !== 3) return null;
  const [start, only, end] = regex.parts;
  if (start!.kind !== "start" || end!.kind !== "end" || only!.kind !== "repeat") return null;
  const { body, min, max } = only!;
  return body.kind === "set" ? { set: body, min, max } : null;
}

function isEverything({ ranges, properties, negated }: CharacterSet): boolean {
  return negated && ranges.length === 0 && properties.length === 0;
}

/** Of the texts that it matches. */
export function lengthsOf(regex: Regex): Lengths {
  const { min, max } = ownLengths(regex);
  return { min, max: isWhole(regex) ? max : Infinity };
}

function ownLengths(regex: Regex): Lengths {
  switch (regex.kind) {
    case "set":
      return { min: 1, max: 1 };
    case "concat":
      return regex.parts
        .map(ownLengths)
        .reduce((a, b) => ({ min: a.min + b.min, max: a.max + b.max }), { min: 0, max: 0 });
    case "or": {
      const all = regex.options.map(ownLengths);
      return {
        min: Math.min(...all.map(({ min }) => min)),
        max: Math.max(...all.map(({ max }) => max)),
      };
    }
    case "repeat": {
      const { min, max } = ownLengths(regex.body);
      return { min: min * regex.min, max: max === 0 || regex.max === 0 ? 0 : max * regex.max };
    }
    default:
      return { min: 0, max: 0 };
  }
}

/** It matches whole texts only. */
function isWhole(regex: Regex): boolean {
  if (regex.kind === "or") return regex.options.every(isWhole);
  if (regex.kind !== "concat" || regex.parts.length === 0) return false;
  return regex.parts[0]!.kind === "start" && regex.parts.at(-1)!.kind === "end";
}

/** All its texts have these characters only. Where two say the same of each other, neither is needed less. */
function hasOnly(regex: Regex, set: CharacterSet): boolean {
  if (countedSet(regex) !== null || set.properties.length > 0 || !isWhole(regex)) return false;
  const outside = invert(rangesOf(set));
  return [...setsIn(regex)].every(
    (each) =>
      each.properties.length === 0 &&
      !rangesOf(each).some(([from, to]) => outside.some(([a, b]) => from <= b && a <= to)),
  );
}

/** All characters of the texts that one of them matches, if they are of one byte. */
function alphabetOf(regexes: readonly Regex[]): Range[] | null {
  for (const regex of regexes) {
    const sets = isWhole(regex) ? [...setsIn(regex)] : [];
    const ranges = merge(sets.flatMap((set) => rangesOf(set)));
    if (ranges.length > 0 && ranges.at(-1)![1] < 128) return ranges;
  }
  return null;
}

function* setsIn(regex: Regex): Generator<CharacterSet> {
  if (regex.kind === "set") yield regex;
  if (regex.kind === "repeat") yield* setsIn(regex.body);
  if (regex.kind === "concat") for (const part of regex.parts) yield* setsIn(part);
  if (regex.kind === "or") for (const option of regex.options) yield* setsIn(option);
}
