/** Strings: what keywords say of them, and the mask engine's keywords for it. */

import { areDisjoint, matches, maxMatchLength, share } from "../regex/automaton.ts";
import { checkCounts } from "../regex/cost.ts";
import { complementOf, mostTogether } from "../regex/complement.ts";
import { type Regex, RegexError, parseRegex } from "../regex/parse.ts";
import { parseAsOne, parsePattern } from "../regex/pattern.ts";
import { writeAllBut, writeOneOf } from "../regex/write.ts";
import type { JsonObject, ScalarAlternative } from "../types.ts";
import { type Count, uncounted } from "../steps.ts";
import type { Excluded, Facts, PatternFact } from "./facts.ts";
import { formatOf, isOfFormat } from "./formats.ts";
import {
  type Lengths,
  type WrittenConditions,
  lengthsOf,
  withLengthsApart,
  writeConditions,
} from "./lengths.ts";
import {
  type Keyword,
  type KeywordContext,
  type Solver,
  type Way,
  always,
  countLimits,
  fact,
  mistaken,
  never,
  unsupported,
} from "./keyword.ts";

/** The mask engine keeps a state for each character that it has counted; 50,000 are its limit. */
const mostCounted = 40_000;

/** Lookups for each character of an expression that is read or written. */
const perCharacter = 20;

const lengths = countLimits("string", "minLength", "maxLength");

export const stringKeywords: Record<string, Keyword> = {
  minLength: counted(lengths["minLength"]!),
  maxLength: counted(lengths["maxLength"]!),
  pattern: {
    types: ["string"],
    ways: (value, context) => {
      const patterns = readPatterns(value, context);
      if (context.holds) return patterns === null ? never : [matching(...patterns)];
      if (patterns === null) return always;
      const others = patterns.map((pattern) => complementPattern(pattern, context.count));
      return others.flatMap((other) => (other === null ? [] : [matching(other)]));
    },
  },
  format: {
    types: ["string"],
    ways: (value, { holds, node }) => {
      const format = typeof value === "string" ? formatOf(value) : "annotation";
      if (format === "annotation") return holds ? always : never;
      if (!holds) unsupported("is negated: text that is not of the format cannot be described");
      return fact((facts) => facts.formats.push({ name: value as string, path: node.path }));
    },
  },
};

function matching(...patterns: PatternFact[]): Way {
  return { change: (facts) => facts.patterns.push(...patterns) };
}

function counted({ ways, ...keyword }: Keyword): Keyword {
  return {
    ...keyword,
    ways: (value, context) => {
      if (typeof value === "number" && value > mostCounted)
        unsupported(`is more than ${mostCounted}, and masks do not count that far`);
      return ways(value, context);
    },
  };
}

type Reading = Pick<KeywordContext, "node" | "count">;

/** @throws Unsupported what no automaton can do */
export function readPattern(value: unknown, { node: { path }, count }: Reading): PatternFact {
  return reading(value, count, (source) => {
    const regex = parseAsOne(source, count);
    if (regex === null) throw new RegexError("matches no text");
    checkCounts(regex);
    return { source, regex, path, keyword: "pattern" };
  });
}

/** What a pattern looks ahead at may be a pattern of its own. @returns null where no text matches. @throws as `readPattern` */
function readPatterns(
  value: unknown,
  { node: { path }, holds, count }: Reading & Pick<KeywordContext, "holds">,
): PatternFact[] | null {
  return reading(value, count, (source) => {
    const regexes = parsePattern(source, !holds, count);
    return (
      regexes?.map((regex, index) => {
        checkCounts(regex);
        const name = index === 0 ? source : `${index} ${source}`;
        return { source: name, regex, path, keyword: "pattern" };
      }) ?? null
    );
  });
}

/** @returns null where every text matches. @throws Unsupported too large */
function complementPattern({ source, regex, path }: PatternFact, count: Count): PatternFact | null {
  return reading(source, count, () => {
    const complement = complementOf(regex, count);
    const place = { path, keyword: "pattern" };
    return complement && { source: `not ${source}`, regex: complement, excludes: regex, ...place };
  });
}

function reading<Result>(value: unknown, count: Count, read: (source: string) => Result): Result {
  if (typeof value !== "string") mistaken("must be a string");
  count(value.length * perCharacter);
  try {
    return read(value);
  } catch (error) {
    if (error instanceof RegexError) unsupported(`has a pattern that ${error.message}`);
    throw error;
  }
}

/** Constants longer than this are written as one pattern: the mask engine takes 50,000 values in all. */
const maxListed = 1000;

export function strings(facts: Facts, solver: Solver): ScalarAlternative[] {
  const { count, report } = solver;
  if (facts.minLength > facts.maxLength) return [];
  if (facts.values !== null) {
    const excluded = new Set(facts.excluded.map(({ value }) => value));
    const values = (facts.values as string[]).filter(
      (value) =>
        !excluded.has(value) &&
        hasLength(facts, value) &&
        // What is too long to be matched here is left to the validator.
        (isLong(value) || fits(facts, value, count)),
    );
    if (values.length === 0) return [];
    // What is written as a pattern is nested as deep as it is long.
    const isPattern = values.length > maxListed && !values.some(isLong);
    const listed = isPattern ? { pattern: `^${writeOneOf(values)}$` } : { enum: values };
    return [{ type: "string", schema: { type: "string", ...listed }, values }];
  }
  const { patterns, ...lengths } = withLengthsApart(facts.patterns, {
    min: facts.minLength,
    max: facts.maxLength,
  });
  if (lengths.min > lengths.max) return [];
  const held = heldTogether(patterns, lengths, facts, solver);
  if (held === null) return [];
  const max = Math.min(lengths.max, ...held.map((one) => one.maxLength));
  const written = writtenPatterns(held, { min: lengths.min, max }, solver);
  const regexes = written.patterns;
  if (written.shortened !== null) {
    const reason = `is more than ${written.shortened} beside a pattern or a format`;
    report({ path: held[0]!.path, keyword: "minLength", reason });
  }
  const excluded: string[] = [];
  for (const { value, ...place } of facts.excluded as (Excluded & { value: string })[]) {
    if (!hasLength(facts, value)) continue;
    if (!isLong(value)) {
      if (fits(facts, value, count)) excluded.push(value);
    } else report({ ...place, reason: "is negated and has a text that is too long" });
  }
  count(excluded.join("").length * perCharacter);
  if (excluded.length > 0) regexes.push(writeAllBut(excluded));
  const conditions: JsonObject[] = regexes.map((regex) => ({ pattern: `^(?:${regex})$` }));
  const schema = {
    type: "string",
    ...(written.min > 0 ? { minLength: written.min } : {}),
    ...(written.max < Infinity ? { maxLength: written.max } : {}),
    ...(conditions.length === 1 ? conditions[0] : {}),
    ...(conditions.length > 1 ? { allOf: conditions } : {}),
  };
  return [{ type: "string", values: null, schema }];
}

function fits({ patterns, formats }: Facts, value: string, count: Count): boolean {
  count(value.length * formats.length * perCharacter);
  return (
    patterns.every(({ regex }) => matches(regex, value, count)) &&
    formats.every(({ name }) => isOfFormat(name, value))
  );
}

interface TextFact extends PatternFact {
  /** What it matches, with its own lengths. */
  whole: Regex;
  /** All that the validator accepts: the mask of a format is narrower. */
  widest: Regex;
  /** Of the mask. */
  maxLength: number;
}

/**
 * What one text can be held to: without the formats whose masks leave no text beside the others, as the mask engine would
 * refuse the schema. @returns null where no text has all that is said
 */
function heldTogether(
  patterns: readonly PatternFact[],
  lengths: Lengths,
  facts: Facts,
  { count, report }: Solver,
): TextFact[] | null {
  const kept: TextFact[] = [];
  const needed = patterns.filter((one) => !isImplied(one, patterns, count));
  const formats = formatsOf(facts);
  const isMany = needed.length + formats.length > mostApart;
  for (const one of [
    ...(isMany ? withOneExcluding(needed, count) : needed).map(asWritten),
    ...formats,
  ]) {
    const excluded = kept.filter((other) => areDisjoint(other.whole, one.whole, count));
    if (excluded.some((other) => areDisjoint(other.widest, one.widest, count))) return null;
    if (!haveCommon(lengths, lengthsOf(one.widest))) return null;
    const { min, max } = lengthsOf(one.whole);
    const mayFit = haveCommon(lengths, { min, max: Math.min(max, one.maxLength) });
    if (excluded.length === 0 && mayFit) kept.push(one);
    else {
      const reason = "has a mask that leaves no text beside the other keywords";
      report({ path: one.path, keyword: one.keyword, reason });
    }
  }
  return kept;
}

function haveCommon(a: Lengths, b: Lengths): boolean {
  return a.min <= b.max && b.min <= a.max;
}

/** More are written together where they can be. */
const mostApart = 4;

/** What excludes texts, as one that excludes all of them. */
function withOneExcluding(patterns: readonly PatternFact[], count: Count): readonly PatternFact[] {
  const excluding = patterns.filter(({ excludes }) => excludes !== undefined);
  const excludes: Regex = { kind: "or", options: excluding.map((one) => one.excludes!) };
  try {
    const regex = complementOf(excludes, count, mostTogether);
    const source = excluding.map((one) => one.source).join(" and ");
    if (regex === null || excluding.length < 2) return patterns;
    const others = patterns.filter((one) => one.excludes === undefined);
    return [...others, { ...excluding[0]!, source, regex, excludes }];
  } catch (error) {
    if (error instanceof RegexError) return patterns;
    throw error;
  }
}

/** What it excludes matches no text that the others match. */
function isImplied(
  { excludes }: PatternFact,
  patterns: readonly PatternFact[],
  count: Count,
): boolean {
  if (excludes === undefined) return false;
  return patterns.some(
    (other) => other.excludes === undefined && areDisjoint(other.regex, excludes, count),
  );
}

function asWritten(pattern: PatternFact & { whole?: Regex }): TextFact {
  const { regex, whole = regex } = pattern;
  return { ...pattern, whole, widest: whole, maxLength: Infinity };
}

/** Read once: they are the same for every schema, and count for none. */
const formatPatterns = new Map<string, Regex>();

function regexOf(source: string): Regex {
  let regex = formatPatterns.get(source);
  if (regex === undefined) {
    regex = parseRegex(source);
    share(regex, uncounted);
    formatPatterns.set(source, regex);
  }
  return regex;
}

/** Formats join the patterns: the mask engine's own refuse some texts, as an IPv6 address that ends with an IPv4 one. */
function formatsOf({ formats }: Facts): TextFact[] {
  const byName = new Map(formats.map((one) => [one.name, one]));
  return [...byName.values()].flatMap(({ name, path }) => {
    const format = formatOf(name);
    if (typeof format === "string") return [];
    const { pattern, widest = pattern, maxLength = Infinity } = format;
    const source = `^(?:${pattern})$`;
    const [regex, all] = [regexOf(source), regexOf(`^(?:${widest})$`)];
    return { source, regex, whole: regex, path, keyword: "format", widest: all, maxLength };
  });
}

function writtenPatterns(
  patterns: readonly PatternFact[],
  lengths: Lengths,
  { report, conjunctions, count }: Solver,
): WrittenConditions {
  const bySource = new Map(patterns.map((pattern) => [pattern.source, pattern]));
  const holdable = conjunctions.holdable([...bySource.values()]);
  const written: Regex[] = [];
  for (const pattern of bySource.values()) {
    if (holdable.has(pattern)) {
      count(pattern.source.length * perCharacter);
      written.push(pattern.regex);
      continue;
    }
    const reason = "has too many others beside it, or too long ones, for one text";
    report({ path: pattern.path, keyword: pattern.keyword, reason });
  }
  return writeConditions(written, lengths);
}

function isLong(value: string): boolean {
  return value.length > maxMatchLength;
}

function hasLength(facts: Facts, value: string): boolean {
  const length = Array.from(value).length;
  return length >= facts.minLength && length <= facts.maxLength;
}
