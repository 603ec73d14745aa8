/** Objects: what keywords say of them, and the named properties, patterns of names and rest that hold it. */

import { isJsonObject } from "../../../json.ts";
import type { JsonObject, JsonType, Literal, ObjectAlternative } from "../types.ts";
import type { Facts, NeededProperty, Place } from "./facts.ts";
import {
  type Keyword,
  type KeywordContext,
  type Solver,
  type Way,
  countLimits,
  expectList,
  fact,
  isAnything,
  mistaken,
  never,
  unevaluated,
} from "./keyword.ts";
import {
  isMatched,
  isName,
  literalsOf,
  namesOf,
  patternsOf,
  patternsWithin,
  restsOf,
} from "./names.ts";
import { readPattern } from "./strings.ts";

const types: readonly JsonType[] = ["object"];

export const objectKeywords: Record<string, Keyword> = {
  ...countLimits("object", "minProperties", "maxProperties"),
  properties: { types, ways: properties },
  required: {
    types,
    ways: (value, context) => {
      const names = expectNames(value);
      return context.holds
        ? fact((facts) => names.forEach((name) => facts.required.add(name)))
        : names.map((name) => lacks(name, context));
    },
  },
  additionalProperties: { types, ways: additionalProperties },
  patternProperties: { types, ways: patternProperties },
  propertyNames: {
    types,
    ways: (value, context) => {
      if (context.holds) {
        const literal = context.literal(true, "propertyNames");
        return fact((facts) => facts.names.push(literal));
      }
      if (isAnything(value)) return never;
      const name = context.literal(false, "propertyNames");
      const wanted: Wanted = { isOne: () => true, name, literal: null, isAnyOther: false };
      return [needs(wanted, context, "propertyNames")];
    },
  },
  unevaluatedProperties: {
    types,
    ways: unevaluated,
  },
  dependencies: dependency("dependencies"),
  dependentRequired: dependency("dependentRequired"),
  dependentSchemas: dependency("dependentSchemas"),
};

function properties(value: unknown, context: KeywordContext): Way[] {
  const { holds, scopes } = context;
  const entries = keysOf(value).map(
    (name) => [name, context.literal(holds, "properties", name)] as const,
  );
  if (!holds) return entries.map(([name, literal]) => hasProperty(name, literal));
  return fact((facts) => {
    facts.namesProperties = true;
    for (const [name, literal] of entries) facts.addProperty(name, literal);
    for (const scope of facts.scopesAt(scopes)) for (const [name] of entries) scope.names.add(name);
  });
}

function additionalProperties(value: unknown, context: KeywordContext): Way[] {
  const { schema, scopes, holds } = context;
  const names = new Set(keysOf(schema["properties"] ?? {}));
  if (!holds && isAnything(value)) return never;
  const sources = schema["patternProperties"];
  const patterns = isJsonObject(sources)
    ? Object.keys(sources).map((source) => readPattern(source, context))
    : [];
  const literal = context.literal(holds, "additionalProperties");
  if (!holds) {
    const wanted: Wanted = {
      isOne: (name) => !names.has(name) && !isMatched(name, patterns, context.count),
      name: null,
      literal: value === false ? null : literal,
      isAnyOther: value === false && patterns.length === 0,
    };
    return [needs(wanted, context, "additionalProperties", [...names])];
  }
  return fact((facts) => {
    facts.rest.push({ names, patterns, literal });
    for (const scope of facts.scopesAt(scopes)) scope.allProperties = true;
  });
}

function patternProperties(value: unknown, context: KeywordContext): Way[] {
  const { scopes, holds } = context;
  const sources = keysOf(value);
  if (!holds)
    return sources.flatMap((source) => {
      if (isAnything((value as JsonObject)[source])) return never;
      const pattern = readPattern(source, context);
      const wanted: Wanted = {
        isOne: (name) => isMatched(name, [pattern], context.count),
        name: null,
        literal: context.literal(false, "patternProperties", source),
        isAnyOther: false,
      };
      return needs(wanted, context, "patternProperties");
    });
  const entries = sources.map((source) => ({
    pattern: readPattern(source, context),
    literal: context.literal(true, "patternProperties", source),
  }));
  return fact((facts) => {
    facts.patternProperties.push(...entries);
    for (const scope of facts.scopesAt(scopes))
      scope.patterns.push(...entries.map(({ pattern }) => pattern));
  });
}

/** "If this property is there, then": each entry is a choice of its own. */
function dependency(keyword: string): Keyword {
  const entries = (value: unknown): [string, unknown][] =>
    Object.entries(isJsonObject(value) ? value : {});
  return {
    types,
    choices: (value, context) =>
      entries(value).map(([name, needed]) => [
        lacks(name, context),
        Array.isArray(needed)
          ? has(name, ...expectNames(needed))
          : { ...has(name), literals: [context.literal(true, keyword, name)] },
      ]),
    /** Where it fails. */
    ways: (value, context) =>
      entries(value).flatMap(([name, needed]): Way[] =>
        Array.isArray(needed)
          ? expectNames(needed).map((missing) => hasWithout(name, missing, context))
          : [{ ...has(name), literals: [context.literal(false, keyword, name)] }],
      ),
  };
}

function has(...names: string[]): Way {
  return { change: (facts) => names.forEach((name) => facts.required.add(name)) };
}

function hasProperty(name: string, literal: Literal): Way {
  return {
    change: (facts) => {
      facts.required.add(name);
      facts.addProperty(name, literal);
    },
  };
}

function lacks(name: string, { document, node }: KeywordContext): Way {
  const literal: Literal = { node: document.make(false, node.path), holds: true, scopes: [] };
  return {
    change: (facts) => {
      if (facts.required.has(name)) return false;
      facts.addProperty(name, literal);
      return true;
    },
  };
}

function hasWithout(name: string, missing: string, context: KeywordContext): Way {
  const { change } = lacks(missing, context);
  return {
    change: (facts) => {
      facts.required.add(name);
      return change?.(facts);
    },
  };
}

type Wanted = Omit<NeededProperty, keyof Place>;

/** @param listed names that are none of those */
function needs(
  wanted: Wanted,
  { node: { path } }: KeywordContext,
  keyword: string,
  listed: readonly string[] = [],
): Way {
  return {
    change: (facts) => {
      facts.needed.push({ ...wanted, path, keyword });
      for (const name of wanted.isAnyOther ? listed : [])
        if (!facts.properties.has(name)) facts.properties.set(name, []);
    },
  };
}

function keysOf(value: unknown): string[] {
  return isJsonObject(value) ? Object.keys(value) : mistaken("must be an object");
}

function expectNames(value: unknown): string[] {
  const names = expectList(value);
  if (names.some((name) => typeof name !== "string")) mistaken("must be an array of strings");
  return names as string[];
}

const maxVariants = 64;
/** Lookups for each of a variant. */
const perProperty = 20;

export function objectAlternatives(facts: Facts, solver: Solver): ObjectAlternative[] {
  const rests = restsOf(facts);
  const nothing = solver.made(false);
  const names = new Map<string, Literal[]>();
  for (const name of [...facts.properties.keys(), ...facts.required])
    if (!names.has(name)) names.set(name, literalsOf(name, facts, rests, solver.count));
  const isClosed = solver.isClosed && rests.length === 0 && facts.namesProperties;
  const { patterns, isOpen } = patternsOf(facts, rests, names.keys(), solver);
  let rest = isClosed ? [nothing] : rests.map(({ literal }) => literal);
  if (isOpen) rest = [];
  let written = patterns;
  const known = namesOf(facts.names, solver);
  if (known !== "any") {
    for (const name of names.keys())
      if (!isName(name, facts.names, solver)) names.set(name, [nothing]);
    const leave = (beside: string): void => {
      const reason = `cannot be combined with the ${beside} beside it`;
      solver.report({ path: facts.names[0]!.node.path, keyword: "propertyNames", reason });
    };
    if (known === null) leave("patterns");
    else if ("values" in known) {
      for (const name of known.values)
        if (!names.has(name)) names.set(name, literalsOf(name, facts, rests, solver.count));
      written = [];
      rest = [nothing];
    } else if (patterns.length > 0 || solver.mayHold(rest)) {
      const listed = [...names.keys()].filter((name) => !names.get(name)!.includes(nothing));
      const within = patternsWithin(known.regex, facts, { rests, rest, listed }, solver);
      if (within === null) leave(patterns.length > 0 ? "patterns" : "properties");
      else {
        written = within;
        rest = [nothing];
      }
    }
  }
  const object: ObjectAlternative = {
    type: "object",
    properties: [...names].map(([name, literals]) => ({
      name,
      state: solver.state(literals),
      required: facts.required.has(name),
    })),
    patterns: written.map(({ regex, literals }) => ({ regex, state: solver.state(literals) })),
    rest: solver.state(rest),
    min: facts.minProperties,
    max: facts.maxProperties,
  };
  return facts.needed
    .reduce((objects, one) => objects.flatMap((each) => withNeeded(each, one, solver)), [object])
    .flatMap((each) => counted(each, facts, solver));
}

/** Each property that may be the needed one, in an object where it is. */
function withNeeded(
  object: ObjectAlternative,
  needed: NeededProperty,
  solver: Solver,
): ObjectAlternative[] {
  const { path, keyword, literal } = needed;
  const ways = object.properties.flatMap((one): ObjectAlternative[] => {
    if (!isNeeded(one.name, needed, solver)) return [];
    const literals = literal === null ? one.state.literals : [...one.state.literals, literal];
    if (!solver.mayHold(literals)) return [];
    solver.count(object.properties.length * perProperty);
    const held = { ...one, state: solver.state(literals), required: true };
    const properties = object.properties.map((each) => (each === one ? held : each));
    return [{ ...object, properties }];
  });
  const isOpen = object.patterns.length > 0 || solver.mayHold(object.rest.literals);
  if (!isOpen) return ways;
  const others = needed.isAnyOther ? withAnyOther(object, needed, solver) : null;
  if (others !== null) return [...ways, ...others];
  const reason = "is negated: an object with some such property cannot be described";
  solver.report({ path, keyword, reason });
  return [object];
}

function isNeeded(text: string, { isOne, name }: NeededProperty, solver: Solver): boolean {
  return isOne(text) && (name === null || isName(text, [name], solver));
}

/** Optional properties that are told apart by being there. */
const mostToldApart = 4;

/** With a property that is not listed, and none of those that are needed. @returns null where they are too many to tell */
function withAnyOther(
  object: ObjectAlternative,
  needed: NeededProperty,
  solver: Solver,
): ObjectAlternative[] | null {
  const optional = object.properties.filter(
    ({ name, required, state }) =>
      !required && !isNeeded(name, needed, solver) && solver.mayHold(state.literals),
  );
  if (optional.length > mostToldApart) return null;
  const nothing = solver.state([solver.made(false)]);
  return Array.from({ length: 2 ** optional.length }, (_, bits) => {
    solver.count(object.properties.length * perProperty);
    const chosen = new Set(optional.filter((_property, index) => bits & (1 << index)));
    const properties = object.properties.map((each) => {
      if (each.required || chosen.has(each)) return { ...each, required: true };
      return { ...each, state: nothing };
    });
    const least = properties.filter(({ required }) => required).length + 1;
    return { ...object, properties, min: Math.max(object.min, least) };
  }).filter(({ min, max }) => min <= max);
}

/** The mask engine counts properties only where every named one is required. */
function counted(object: ObjectAlternative, facts: Facts, solver: Solver): ObjectAlternative[] {
  const required = object.properties.filter((property) => property.required);
  if (object.min <= required.length) object.min = 0;
  if (object.min === 0 && object.max === Infinity) return [object];
  const optional = object.properties.filter(
    ({ required: isRequired, state }) => !isRequired && solver.mayHold(state.literals),
  );
  const isOpen = object.patterns.length > 0 || solver.mayHold(object.rest.literals);
  if (!isOpen && object.max >= required.length + optional.length) object.max = Infinity;
  if ((object.min === 0 && object.max === Infinity) || optional.length === 0)
    return object.max < required.length ? [] : [object];
  if (2 ** optional.length > maxVariants) {
    if (object.max === Infinity && object.min === required.length + 1)
      return atLeastOneMore(object, optional, isOpen, solver);
    const keyword = object.max === Infinity ? "minProperties" : "maxProperties";
    const reason = "counts too many optional properties";
    solver.report({ path: facts.properties.size > 0 ? pathOf(facts) : "#", keyword, reason });
    return [{ ...object, min: 0, max: Infinity }];
  }
  const nothing = solver.state([solver.made(false)]);
  const variants: ObjectAlternative[] = [];
  for (let bits = 0; bits < 2 ** optional.length; bits++) {
    const chosen = new Set(optional.filter((_, index) => bits & (1 << index)));
    const count = required.length + chosen.size;
    if (count > object.max || (!isOpen && count < object.min)) continue;
    solver.count(object.properties.length * perProperty);
    const properties = object.properties.map((property) => {
      if (property.required || chosen.has(property)) return { ...property, required: true };
      return { ...property, state: nothing };
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
  solver: Solver,
): ObjectAlternative[] {
  solver.count(optional.length * object.properties.length * perProperty);
  const variants = optional.map((chosen) => ({
    ...object,
    min: 0,
    properties: object.properties.map((property) =>
      property === chosen ? { ...property, required: true } : property,
    ),
  }));
  if (isOpen) {
    const none = solver.state([solver.made(false)]);
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
