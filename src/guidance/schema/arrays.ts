/** Arrays: from facts to a prefix and a rest. */

import type { ArrayAlternative, State } from "./alternatives.ts";
import type { ContainsFact, Facts, Literal } from "./facts.ts";
import type { SchemaIssue } from "./types.ts";

export interface ArrayHooks {
  report(issue: SchemaIssue): void;
  state(literals: readonly Literal[]): State;
  /** All values of a state, if it has only a few scalars. */
  valuesOf(state: State): readonly unknown[] | null;
  mayHold(literals: readonly Literal[]): boolean;
  constant(value: unknown): Literal;
}

/** Where an item that `contains` asks for may stand; further back is left out. */
const window = 5;
const maxVariants = 64;
const maxTuple = 1000;

/** What must hold at certain places, in addition. */
interface Variant {
  places: Map<number, Literal[]>;
  /** From this index on. */
  rest: { from: number; literal: Literal }[];
  min: number;
}

export function arrayAlternatives(facts: Facts, hooks: ArrayHooks): ArrayAlternative[] {
  applyUnevaluated(facts, hooks);
  return containsVariants(facts, hooks).flatMap((variant) => build(facts, variant, hooks));
}

function applyUnevaluated(facts: Facts, { report }: ArrayHooks): void {
  for (const scope of facts.scopes) {
    if (scope.items === null || scope.allItems) continue;
    if (scope.contains) {
      const reason = "stands beside contains, whose matches count as evaluated";
      report({ path: scope.node.path, keyword: "unevaluatedItems", reason });
    } else facts.items.push({ from: scope.itemCount, literal: scope.items });
  }
}

function containsVariants(facts: Facts, { report }: ArrayHooks): Variant[] {
  let variants: Variant[] = [{ places: new Map(), rest: [], min: 0 }];
  for (const contains of facts.contains) {
    const ways = waysToContain(contains, facts.maxItems);
    if (ways.length * variants.length > maxVariants) {
      const reason = "asks for more items than can be placed";
      report({ path: contains.node.path, keyword: "contains", reason });
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

function build(facts: Facts, variant: Variant, hooks: ArrayHooks): ArrayAlternative[] {
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
  const prefix = Array.from({ length }, (_, place) => hooks.state(literalsAt(place)));
  const rest = hooks.state(items.map(({ literal }) => literal));
  const array: ArrayAlternative = { type: "array", prefix, rest, min, max: facts.maxItems };
  return facts.unique === null ? [array] : withoutRepeats(array, facts.unique.path, hooks);
}

function withoutRepeats(
  array: ArrayAlternative,
  path: string,
  hooks: ArrayHooks,
): ArrayAlternative[] {
  const { prefix, rest, min, max } = array;
  if (max <= 1) return [array];
  if (prefix.length >= max || !hooks.mayHold(rest.literals)) {
    const tuple = { ...array, max: Math.min(max, prefix.length) };
    if (areDisjoint(prefix.slice(0, tuple.max), hooks)) return [tuple];
  } else if (prefix.length === 0) {
    const values = hooks.valuesOf(rest);
    if (values !== null && values.length <= 6) {
      const lists = arrangements(values, values.length <= 4).filter(
        (list) => list.length >= min && list.length <= max,
      );
      return lists.map((list) => ({
        type: "array",
        prefix: list.map((value) => hooks.state([hooks.constant(value)])),
        rest,
        min: list.length,
        max: list.length,
      }));
    }
  }
  hooks.report({ path, keyword: "uniqueItems", reason: "needs memory of all items before" });
  return [array];
}

function areDisjoint(states: readonly State[], { mayHold }: ArrayHooks): boolean {
  return states.every((state, index) =>
    states.slice(index + 1).every((other) => !mayHold([...state.literals, ...other.literals])),
  );
}

/** Each selection of the values; in every order, or in theirs. */
function arrangements(values: readonly unknown[], everyOrder: boolean): unknown[][] {
  const found: unknown[][] = [[]];
  const extend = (list: unknown[], left: readonly unknown[]): void => {
    left.forEach((value, index) => {
      const longer = [...list, value];
      found.push(longer);
      extend(longer, everyOrder ? left.toSpliced(index, 1) : left.slice(index + 1));
    });
  };
  extend([], values);
  return found;
}
