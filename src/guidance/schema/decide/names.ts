/** Names of properties: which of them a pattern, `propertyNames` or the rest speaks of, and as what they are written. */

import type { Count } from "../steps.ts";
import { areDisjoint, matches } from "../regex/automaton.ts";
import { withoutTexts } from "../regex/difference.ts";
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

function isMatched(name: string, patterns: readonly PatternFact[], count: Count): boolean {
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

/** @param listed names of properties: their states hold what the patterns say of them */
export function patternsOf(
  facts: Facts,
  rests: readonly RestFact[],
  listed: Iterable<string>,
  solver: Solver,
): { regex: string; literals: Literal[] }[] {
  const bySource = new Map<string, Pattern>();
  for (const { pattern, literal } of facts.patternProperties) {
    const known = bySource.get(pattern.source);
    if (known === undefined) bySource.set(pattern.source, { fact: pattern, literals: [literal] });
    else known.literals.push(literal);
  }
  const kept: (Pattern & { regex: string })[] = [];
  for (const { fact, literals } of bySource.values()) {
    for (const rest of rests)
      if (!rest.patterns.some(({ source }) => source === fact.source)) literals.push(rest.literal);
    const problem = (reason: string): void =>
      solver.report({ path: fact.path, keyword: "patternProperties", reason });
    if (kept.some((other) => !areDisjoint(other.fact.regex, fact.regex, solver.count))) {
      problem("has patterns that may match the same name");
      continue;
    }
    try {
      const regex = writeBeside(fact.regex, [...listed], solver);
      if (regex === undefined) {
        problem("has patterns that take too much to be told from the listed names");
        kept.push({ fact, literals: [], regex: writeWhole(fact.regex) });
      } else if (regex !== null) kept.push({ fact, literals, regex });
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      problem(`has a pattern that ${error.message}`);
    }
  }
  return kept;
}

/**
 * The names that a pattern matches, without those that are listed: the mask engine would hold these to the pattern's schema
 * once more, and refuses to where that refers to the object itself. @returns null where no other name is left; undefined: the
 * schema has too many of them
 */
function writeBeside(
  regex: Regex,
  listed: readonly string[],
  solver: Solver,
): string | null | undefined {
  const matched = listed.filter((name) => matches(regex, name, solver.count));
  const whole = writeWhole(regex);
  if (matched.length === 0) return whole;
  const others = othersOf(whole, regex, matched, solver);
  if (others === "too many") return undefined;
  return others === "too large" ? whole : others;
}

/** The same of an expression of whole names. @returns null where it cannot be had, too */
export function besideListed(
  { regex }: { regex: string },
  listed: readonly string[],
  solver: Solver,
): string | null {
  if (listed.length === 0) return regex;
  const others = othersOf(regex, null, listed, solver);
  return others === "too large" || others === "too many" ? null : others;
}

type Others = string | null | "too large" | "too many";

/** Characters of them in one schema: they take time, and the mask engine reads no grammar of more than two million. */
const mostWritten = 100_000;

/** Of a schema: the branches of a union often list the same names. */
const known = new WeakMap<Solver, { others: Map<string, Others>; written: number }>();

/** @param regex null: to be read from what is written */
function othersOf(
  written: string,
  regex: Regex | null,
  listed: readonly string[],
  solver: Solver,
): Others {
  const inSchema = known.get(solver) ?? { others: new Map<string, Others>(), written: 0 };
  known.set(solver, inSchema);
  if (inSchema.written > mostWritten) return "too many";
  const key = JSON.stringify([written, ...listed]);
  let others = inSchema.others.get(key);
  if (others === undefined) {
    others = othersWritten(written, regex, listed, solver.count);
    inSchema.others.set(key, others);
  }
  // Each object has its own.
  inSchema.written += others?.length ?? 0;
  return others;
}

function othersWritten(
  written: string,
  regex: Regex | null,
  listed: readonly string[],
  count: Count,
): Others {
  try {
    const left = withoutTexts(regex ?? readWhole(written), listed, count);
    return left && writeWhole(left);
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    return "too large";
  }
}
