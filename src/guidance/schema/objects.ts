/** Objects: from facts to named properties, patterns of names, and the rest. */

import type { ObjectAlternative, State } from "./alternatives.ts";
import { isMatched } from "./container-keywords.ts";
import type { Facts, Literal, PatternFact, RestFact } from "./facts.ts";
import { RegexError } from "./regex.ts";
import { writeWhole } from "./regex-write.ts";
import { areDisjoint } from "./regex-disjoint.ts";
import type { SchemaIssue } from "./types.ts";

export interface ObjectHooks {
  report(issue: SchemaIssue): void;
  state(literals: readonly Literal[]): State;
  /** What holds for nothing. */
  nothing: Literal;
  mayHold(literals: readonly Literal[]): boolean;
  /** A name that must satisfy these: its values, a regular expression, or null where neither says it. */
  namesOf(literals: readonly Literal[]): { values: string[] } | { regex: string } | null;
  isName(name: string, literals: readonly Literal[]): boolean;
  /** Objects with named properties have no others unless the schema says so. */
  closed: boolean;
}

const maxVariants = 64;

interface Pattern {
  fact: PatternFact;
  literals: Literal[];
}

export function objectAlternatives(facts: Facts, hooks: ObjectHooks): ObjectAlternative[] {
  const rests = restsOf(facts);
  const patterns = patternsOf(facts, rests, hooks);
  const names = new Map<string, Literal[]>();
  for (const name of [...facts.properties.keys(), ...facts.required])
    if (!names.has(name)) names.set(name, literalsOf(name, facts, rests));
  const isClosed = hooks.closed && rests.length === 0 && facts.namesProperties;
  let rest = isClosed ? [hooks.nothing] : rests.map(({ literal }) => literal);
  let written = patterns.map(({ regex, literals }) => ({ regex, state: hooks.state(literals) }));
  if (facts.names.length > 0) {
    const known = hooks.namesOf(facts.names);
    for (const name of names.keys())
      if (!hooks.isName(name, facts.names)) names.set(name, [hooks.nothing]);
    if (known === null || ("regex" in known && written.length > 0)) {
      const reason = "says of names what cannot be joined with the patterns beside it";
      hooks.report({ path: facts.names[0]!.node.path, keyword: "propertyNames", reason });
    } else if ("regex" in known) {
      written = [{ regex: known.regex, state: hooks.state(rest) }];
      rest = [hooks.nothing];
    } else {
      for (const name of known.values)
        if (!names.has(name)) names.set(name, literalsOf(name, facts, rests));
      written = [];
      rest = [hooks.nothing];
    }
  }
  const object: ObjectAlternative = {
    type: "object",
    properties: [...names].map(([name, literals]) => ({
      name,
      state: hooks.state(literals),
      required: facts.required.has(name),
    })),
    patterns: written,
    rest: hooks.state(rest),
    min: facts.minProperties,
    max: facts.maxProperties,
  };
  return counted(object, facts, hooks);
}

function restsOf(facts: Facts): RestFact[] {
  const rests = [...facts.rest];
  for (const { properties, allProperties, names, patterns } of facts.scopes)
    if (properties !== null && !allProperties) rests.push({ names, patterns, literal: properties });
  return rests;
}

function literalsOf(name: string, facts: Facts, rests: readonly RestFact[]): Literal[] {
  return [
    ...(facts.properties.get(name) ?? []),
    ...facts.patternProperties
      .filter(({ pattern }) => isMatched(name, [pattern]))
      .map(({ literal }) => literal),
    ...rests
      .filter((rest) => !rest.names.has(name) && !isMatched(name, rest.patterns))
      .map(({ literal }) => literal),
  ];
}

function patternsOf(
  facts: Facts,
  rests: readonly RestFact[],
  hooks: ObjectHooks,
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
      hooks.report({ path: fact.node.path, keyword: "patternProperties", reason });
    if (kept.some((other) => !areDisjoint(other.fact.regex, fact.regex))) {
      problem("has patterns that may match the same name");
      continue;
    }
    try {
      kept.push({ fact, literals, regex: writeWhole(fact.regex) });
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      problem(`has a pattern that ${error.message}`);
    }
  }
  return kept;
}

/** The mask engine counts properties only where every named one is required. */
function counted(object: ObjectAlternative, facts: Facts, hooks: ObjectHooks): ObjectAlternative[] {
  const required = object.properties.filter((property) => property.required);
  if (object.min <= required.length) object.min = 0;
  if (object.min === 0 && object.max === Infinity) return [object];
  const optional = object.properties.filter(
    ({ required: isRequired, state }) => !isRequired && hooks.mayHold(state.literals),
  );
  const isOpen = object.patterns.length > 0 || hooks.mayHold(object.rest.literals);
  if (!isOpen && object.max >= required.length + optional.length) object.max = Infinity;
  if ((object.min === 0 && object.max === Infinity) || optional.length === 0)
    return object.max < required.length ? [] : [object];
  if (2 ** optional.length > maxVariants) {
    if (object.max === Infinity && object.min === required.length + 1)
      return atLeastOneMore(object, optional, isOpen, hooks);
    const keyword = object.max === Infinity ? "minProperties" : "maxProperties";
    const reason = "counts too many properties that may be left out";
    hooks.report({ path: facts.properties.size > 0 ? pathOf(facts) : "#", keyword, reason });
    return [{ ...object, min: 0, max: Infinity }];
  }
  const variants: ObjectAlternative[] = [];
  for (let bits = 0; bits < 2 ** optional.length; bits++) {
    const chosen = new Set(optional.filter((_, index) => bits & (1 << index)));
    const count = required.length + chosen.size;
    if (count > object.max || (!isOpen && count < object.min)) continue;
    const properties = object.properties.map((property) => {
      if (property.required || chosen.has(property)) return { ...property, required: true };
      return { ...property, state: hooks.state([hooks.nothing]) };
    });
    variants.push({ ...object, properties, min: count >= object.min ? 0 : object.min });
  }
  return variants;
}

type Property = ObjectAlternative["properties"][number];

function atLeastOneMore(
  object: ObjectAlternative,
  optional: readonly Property[],
  isOpen: boolean,
  hooks: ObjectHooks,
): ObjectAlternative[] {
  const variants = optional.map((chosen) => ({
    ...object,
    min: 0,
    properties: object.properties.map((property) =>
      property === chosen ? { ...property, required: true } : property,
    ),
  }));
  if (isOpen) {
    const none = hooks.state([hooks.nothing]);
    const properties = object.properties.map((property) =>
      property.required ? property : { ...property, state: none },
    );
    variants.push({ ...object, properties });
  }
  return variants;
}

function pathOf(facts: Facts): string {
  const [first] = [...facts.properties.values()];
  return first?.[0]?.node.path.replace(/\/properties\/[^/]*$/u, "") ?? "#";
}
