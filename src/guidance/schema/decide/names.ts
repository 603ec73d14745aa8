/** Names of properties: which of them a pattern, `propertyNames` or the rest speaks of, and as what they are written. */

import type { Count } from "../steps.ts";
import { areDisjoint, matches } from "../regex/automaton.ts";
import { regionsOf } from "../regex/difference.ts";
import { type Regex, RegexError } from "../regex/parse.ts";
import { readWhole, writeWhole } from "../regex/write.ts";
import type { Literal } from "../types.ts";
import type { Facts, PatternFact, RestFact } from "./facts.ts";
import type { Solver } from "./keyword.ts";

interface Pattern {
  fact: PatternFact;
  literals: Literal[];
}

/** Of names that must satisfy these: all, an expression, or null where neither can be had; `any` where they say nothing. */
export function namesOf(
  names: readonly Literal[],
  { alternatives }: Solver,
): { values: string[] } | { regex: string } | "any" | null {
  if (names.length === 0) return "any";
  const found = alternatives("string", names);
  const lists = found.map((each) => ("values" in each ? each.values : null));
  if (lists.every((list) => list !== null)) return { values: lists.flat() as string[] };
  const [only] = found;
  if (only === undefined || found.length > 1 || !("schema" in only)) return null;
  const { pattern, minLength, maxLength, allOf } = only.schema;
  if (allOf !== undefined) return null;
  const hasLength = minLength !== undefined || maxLength !== undefined;
  if (typeof pattern === "string") return hasLength ? null : { regex: pattern.slice(1, -1) };
  if (!hasLength) return "any";
  const most = maxLength === undefined ? "" : Number(maxLength);
  return { regex: `[\\s\\S]{${Number(minLength ?? 0)},${most}}` };
}

export function isName(name: string, names: readonly Literal[], solver: Solver): boolean {
  return solver.alternatives("string", [...names, solver.made({ const: name })]).length > 0;
}

export function isMatched(name: string, patterns: readonly PatternFact[], count: Count): boolean {
  return patterns.some(({ regex }) => matches(regex, name, count));
}

export function restsOf(facts: Facts): RestFact[] {
  const rests = [...facts.rest];
  for (const { properties, allProperties, names, patterns } of facts.scopes)
    if (properties !== null && !allProperties) rests.push({ names, patterns, literal: properties });
  return rests;
}

export function literalsOf(
  name: string,
  facts: Facts,
  rests: readonly RestFact[],
  count: Count,
): Literal[] {
  return [
    ...(facts.properties.get(name) ?? []),
    ...facts.patternProperties
      .filter(({ pattern }) => isMatched(name, [pattern], count))
      .map(({ literal }) => literal),
    ...rests
      .filter((rest) => !rest.names.has(name) && !isMatched(name, rest.patterns, count))
      .map(({ literal }) => literal),
  ];
}

export interface NamePatterns {
  /** No two match the same name. */
  patterns: { regex: string; literals: Literal[] }[];
  /** Some could not be written: a name that has none of these may have any value. */
  isOpen: boolean;
}

/** @param listed names of properties: their states hold what the patterns say of them */
export function patternsOf(
  facts: Facts,
  rests: readonly RestFact[],
  listed: Iterable<string>,
  solver: Solver,
): NamePatterns {
  const names = [...listed];
  const found: NamePatterns = { patterns: [], isOpen: false };
  for (const group of groupsOf(bySource(facts), solver.count)) {
    const matched = names.filter((name) =>
      group.some(({ fact }) => isMatched(name, [fact], solver.count)),
    );
    try {
      found.patterns.push(...writtenGroup(group, matched, rests, solver));
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      const { path } = group[0]!.fact;
      const reason = `has a pattern that ${error.message}`;
      solver.report({ path, keyword: "patternProperties", reason });
      found.isOpen = true;
    }
  }
  return found;
}

/** @param group patterns that may match the same name @throws RegexError where they cannot be written */
function writtenGroup(
  group: readonly Pattern[],
  matched: readonly string[],
  rests: readonly RestFact[],
  solver: Solver,
): NamePatterns["patterns"] {
  const [{ fact }, ...others] = group as [Pattern, ...Pattern[]];
  if (others.length > 0 || matched.length > 0) {
    const regexes = group.map((pattern) => pattern.fact.regex);
    const regions = regionsIn(regexes, matched, solver);
    if (regions !== "too large" && regions !== "too many")
      return regions.map(({ regex, matched: which }) => ({
        regex,
        literals: literalsOfRegion(group, which, rests),
      }));
    if (others.length > 0)
      throw new RegexError("matches names that others match, in too many ways");
    if (regions === "too many") {
      const reason = "has patterns that take too much to be told from the listed names";
      solver.report({ path: fact.path, keyword: "patternProperties", reason });
      return [{ regex: writeWhole(fact.regex), literals: [] }];
    }
  }
  return [{ regex: writeWhole(fact.regex), literals: literalsOfRegion(group, [true], rests) }];
}

/**
 * All names that `names` allows, but for the listed ones.
 * @param rest of names that no pattern matches
 * @returns null where they take too much to be told apart
 */
export function patternsWithin(
  names: string,
  facts: Facts,
  {
    rests,
    rest,
    listed,
  }: { rests: readonly RestFact[]; rest: Literal[]; listed: readonly string[] },
  solver: Solver,
): NamePatterns["patterns"] | null {
  const all = bySource(facts);
  // Where any value may stand, listed names may be held to it once more.
  const isPlain = listed.length === 0 || solver.state(rest).literals.length === 0;
  if (all.length === 0 && isPlain) return [{ regex: names, literals: rest }];
  const regexes = [readWhole(names), ...all.map(({ fact }) => fact.regex)];
  const regions = regionsIn(regexes, listed, solver);
  if (regions === "too large" || regions === "too many") return null;
  return regions
    .filter(({ matched: [isName] }) => isName)
    .map(({ regex, matched: [, ...matched] }) => ({
      regex,
      literals: matched.includes(true) ? literalsOfRegion(all, matched, rests) : rest,
    }));
}

function bySource(facts: Facts): Pattern[] {
  const found = new Map<string, Pattern>();
  for (const { pattern, literal } of facts.patternProperties) {
    const known = found.get(pattern.source);
    if (known === undefined) found.set(pattern.source, { fact: pattern, literals: [literal] });
    else known.literals.push(literal);
  }
  return [...found.values()];
}

/** Those that may match the same name together. */
function groupsOf(patterns: readonly Pattern[], count: Count): Pattern[][] {
  const groups: Pattern[][] = [];
  for (const pattern of patterns) {
    const joined = groups.filter((group) =>
      group.some(({ fact }) => !areDisjoint(fact.regex, pattern.fact.regex, count)),
    );
    for (const group of joined) groups.splice(groups.indexOf(group), 1);
    groups.push([...joined.flat(), pattern]);
  }
  return groups;
}

/** What holds for names that these of the patterns match, and no other one. */
function literalsOfRegion(
  patterns: readonly Pattern[],
  matched: readonly boolean[],
  rests: readonly RestFact[],
): Literal[] {
  const matching = patterns.filter((_, index) => matched[index]);
  const sources = new Set(matching.map(({ fact }) => fact.source));
  return [
    ...matching.flatMap(({ literals }) => literals),
    ...rests
      .filter((rest) => !rest.patterns.some(({ source }) => sources.has(source)))
      .map(({ literal }) => literal),
  ];
}

interface WrittenRegion {
  regex: string;
  matched: readonly boolean[];
}

type Regions = readonly WrittenRegion[] | "too large" | "too many";

/** Characters of the expressions of several patterns: the mask engine looks whether two match the same name, not for long. */
const mostTogether = 3000;
/** Characters of them in one schema: they take time, and the mask engine reads no grammar of more than two million. */
const mostWritten = 100_000;

/** Of a schema: the branches of a union often list the same names. */
const known = new WeakMap<Solver, { regions: Map<string, Regions>; written: number }>();

/**
 * Names that just these of the patterns match, without those that are listed: the mask engine would hold these to the
 * pattern's schema once more, and refuses to where that refers to the object itself.
 */
function regionsIn(regexes: readonly Regex[], listed: readonly string[], solver: Solver): Regions {
  const inSchema = known.get(solver) ?? { regions: new Map<string, Regions>(), written: 0 };
  known.set(solver, inSchema);
  if (inSchema.written > mostWritten) return "too many";
  const key = JSON.stringify([regexes.map(writeWhole), listed]);
  let regions = inSchema.regions.get(key);
  if (regions === undefined) {
    regions = writtenRegions(regexes, listed, solver.count);
    inSchema.regions.set(key, regions);
  }
  // Each object has its own.
  if (typeof regions !== "string") inSchema.written += lengthOf(regions);
  return regions;
}

function writtenRegions(
  regexes: readonly Regex[],
  listed: readonly string[],
  count: Count,
): Regions {
  try {
    const regions = regionsOf(regexes, listed, count).map(({ regex, matched }) => ({
      regex: writeWhole(regex),
      matched,
    }));
    return regexes.length > 1 && lengthOf(regions) > mostTogether ? "too large" : regions;
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    return "too large";
  }
}

function lengthOf(regions: readonly WrittenRegion[]): number {
  return regions.reduce((sum, { regex }) => sum + regex.length, 0);
}
