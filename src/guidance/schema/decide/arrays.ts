/** Arrays: what keywords say of them, and a prefix and a rest that hold it. */

import type { ArrayAlternative, JsonType, Literal } from "../types.ts";
import type { ContainsFact, Facts } from "./facts.ts";
import {
  type Keyword,
  type KeywordContext,
  type Solver,
  type Way,
  always,
  countLimits,
  expectCount,
  expectList,
  fact,
  never,
  unevaluated,
  unsupported,
} from "./keyword.ts";
import { withoutRepeats } from "./unique.ts";

const types: readonly JsonType[] = ["array"];

export const arrayKeywords: Record<string, Keyword> = {
  ...countLimits("array", "minItems", "maxItems"),
  prefixItems: { types, ways: (value, context) => tuple(value, context, "prefixItems") },
  items: {
    types,
    ways: (value, context) =>
      Array.isArray(value)
        ? tuple(value, context, "items")
        : rest(context, "items", tupleLength(context.schema["prefixItems"])),
  },
  additionalItems: {
    types,
    ways: (_value, context) => {
      const { items } = context.schema;
      if (Array.isArray(items)) return rest(context, "additionalItems", items.length);
      return context.holds ? always : never;
    },
  },
  contains: { types, ways: contains },
  uniqueItems: {
    types,
    ways: (value, { node, holds }) => {
      if (value !== true) return holds ? always : never;
      if (!holds) unsupported("is negated: arrays with a repeated item cannot be described");
      return fact((facts) => (facts.unique = node.path));
    },
  },
  unevaluatedItems: {
    types,
    ways: unevaluated,
  },
};

function tupleLength(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

function tuple(value: unknown, context: KeywordContext, keyword: string): Way[] {
  const { holds, scopes } = context;
  const literals = expectList(value).map((_, index) => context.literal(holds, keyword, index));
  if (holds)
    return fact((facts) => {
      literals.forEach((literal, index) => facts.prefix.push({ index, literal }));
      for (const scope of facts.scopesAt(scopes))
        scope.itemCount = Math.max(scope.itemCount, literals.length);
    });
  return literals.map((literal, index) => ({
    change: (facts) => {
      facts.minItems = Math.max(facts.minItems, index + 1);
      facts.prefix.push({ index, literal });
    },
  }));
}

/** Of all items from this index on. */
function rest(context: KeywordContext, keyword: string, from: number): Way[] {
  const { holds, scopes, node } = context;
  const literal = context.literal(holds, keyword);
  return fact((facts) => {
    if (!holds) facts.contains.push({ from, min: 1, max: Infinity, literal, path: node.path });
    else facts.items.push({ from, literal });
    for (const scope of facts.scopesAt(scopes)) scope.allItems = true;
  });
}

function contains(_value: unknown, context: KeywordContext): Way[] {
  const { schema, scopes, node, holds, document } = context;
  const min = expectCount(schema["minContains"] ?? 1);
  const max = schema["maxContains"] === undefined ? Infinity : expectCount(schema["maxContains"]);
  const literal = context.literal(true, "contains");
  const way = (fewest: number, most: number): Way => ({
    change: (facts) => {
      facts.contains.push({ from: 0, min: fewest, max: most, literal, path: node.path });
      const evaluated = document.isOf2019 ? [] : facts.scopesAt(scopes);
      for (const scope of evaluated) scope.contains.push(literal);
      return fewest <= most;
    },
  });
  if (holds) return [way(min, max)];
  const tooFew = min > 0 ? [way(0, min - 1)] : never;
  return max < Infinity ? [...tooFew, way(max + 1, Infinity)] : tooFew;
}

/** Where an item that `contains` asks for may stand; further back is left out. */
const window = 5;
const maxVariants = 128;
const maxTuple = 1000;

/** What must hold at certain places, in addition. */
interface Variant {
  places: Map<number, Literal[]>;
  /** From this index on. */
  rest: { from: number; literal: Literal }[];
  min: number;
}

export function arrayAlternatives(facts: Facts, solver: Solver): ArrayAlternative[] {
  applyUnevaluated(facts, solver);
  return containsVariants(facts, solver).flatMap((variant) => build(facts, variant, solver));
}

function applyUnevaluated(facts: Facts, { made }: Solver): void {
  for (const { items, allItems, itemCount, contains: found } of facts.scopes) {
    if (items === null || allItems) continue;
    const any = [...found, items].map(({ node }) => node.schema);
    const literal = found.length === 0 ? items : made({ anyOf: any }, items.node.base);
    facts.items.push({ from: itemCount, literal });
  }
}

function containsVariants(facts: Facts, { report }: Solver): Variant[] {
  let variants: Variant[] = [{ places: new Map(), rest: [], min: 0 }];
  for (const one of facts.contains) {
    const ways = waysToContain(one, facts.maxItems);
    if (ways.length * variants.length > maxVariants) {
      const reason = "asks for too many items";
      report({ path: one.path, keyword: "contains", reason });
      continue;
    }
    variants = variants.flatMap((variant) => ways.map((way) => mergeVariants(variant, way)));
  }
  return variants;
}

function waysToContain({ from, min, max, literal }: ContainsFact, maxItems: number): Variant[] {
  const length = Math.max(0, Math.min(window, maxItems - from));
  const other: Literal = { ...literal, holds: !literal.holds, scopes: [] };
  const ways: Variant[] = [];
  if (max === Infinity) {
    for (const places of subsets(length, min, min))
      ways.push(variantOf(places, from, literal, null));
    return ways;
  }
  for (const places of subsets(length, min, Math.min(max, length)))
    ways.push(variantOf(places, from, literal, other));
  return ways;
}

function variantOf(
  chosen: readonly number[],
  from: number,
  literal: Literal,
  other: Literal | null,
): Variant {
  const places = new Map<number, Literal[]>();
  const last = (chosen.at(-1) ?? -1) + 1;
  for (let place = 0; place < last; place++) {
    const held = chosen.includes(place) ? literal : other;
    if (held !== null) places.set(from + place, [held]);
  }
  return {
    places,
    rest: other === null ? [] : [{ from: from + last, literal: other }],
    min: last === 0 ? 0 : from + last,
  };
}

function mergeVariants(a: Variant, b: Variant): Variant {
  const places = new Map([...a.places].map(([place, literals]) => [place, [...literals]]));
  for (const [place, literals] of b.places)
    places.set(place, [...(places.get(place) ?? []), ...literals]);
  return { places, rest: [...a.rest, ...b.rest], min: Math.max(a.min, b.min) };
}

/** Of the places 0 to `length` - 1, each choice of `min` to `max`, in order. */
function subsets(length: number, min: number, max: number): number[][] {
  const found: number[][] = [];
  for (let bits = 0; bits < 2 ** length; bits++) {
    const places = Array.from({ length }, (_, place) => place).filter(
      (place) => bits & (1 << place),
    );
    if (places.length >= min && places.length <= max) found.push(places);
  }
  return found;
}

function build(facts: Facts, variant: Variant, solver: Solver): ArrayAlternative[] {
  const min = Math.max(facts.minItems, variant.min);
  if (min > facts.maxItems) return [];
  const items = [...facts.items, ...variant.rest];
  const ends = [
    ...facts.prefix.map(({ index }) => index + 1),
    ...items.map(({ from }) => from),
    ...[...variant.places.keys()].map((place) => place + 1),
  ];
  const length = Math.min(Math.max(0, ...ends), facts.maxItems, maxTuple);
  const literalsAt = (place: number): Literal[] => [
    ...facts.prefix.filter(({ index }) => index === place).map(({ literal }) => literal),
    ...items.filter(({ from }) => from <= place).map(({ literal }) => literal),
    ...(variant.places.get(place) ?? []),
  ];
  const prefix = Array.from({ length }, (_, place) => solver.state(literalsAt(place)));
  const rest = solver.state(items.map(({ literal }) => literal));
  const array: ArrayAlternative = { type: "array", prefix, rest, min, max: facts.maxItems };
  return facts.unique === null ? [array] : withoutRepeats(array, facts.unique, solver);
}
