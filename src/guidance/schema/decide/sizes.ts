/** How many different values there are, at least. */

import { matches } from "../regex/automaton.ts";
import { type Regex, RegexError, parseRegex } from "../regex/parse.ts";
import { type CharacterSet, rangesOf } from "../regex/sets.ts";
import type {
  Alternative,
  ArrayAlternative,
  JsonObject,
  ObjectAlternative,
  State,
} from "../types.ts";
import { type Solver, jsonTypes } from "./keyword.ts";

/** Values inside of each other that are looked at. */
const deepest = 3;
/** Lookups for each character of an expression. */
const perCharacter = 20;

/** @returns the number if it is below `mostRemembered`, else that, or more */
export function fewestItems(state: State, solver: Solver): number {
  return sizeOf(state, solver, { enough: mostRemembered, depth: 0 });
}

/** So many different items are as many as any list has. */
export const mostRemembered = 1000;

interface Search {
  enough: number;
  depth: number;
}

function sizeOf(state: State, solver: Solver, search: Search): number {
  if (state.literals.length === 0) return Infinity;
  let size = sizes.get(state);
  if (size !== undefined) return size;
  // Until it is known, as of what contains itself.
  sizes.set(state, 1);
  size = sumOfTypes(state, solver, search);
  sizes.set(state, size);
  return size;
}

const sizes = new WeakMap<State, number>();

function sumOfTypes(state: State, solver: Solver, search: Search): number {
  let size = 0;
  for (const type of jsonTypes) {
    // Of one type, alternatives may have values in common.
    const found = solver.alternatives(type, state.literals);
    size += Math.max(0, ...found.map((each) => sizeOfOne(each, solver, search)));
    if (size >= search.enough) break;
  }
  return size;
}

function sizeOfOne(alternative: Alternative, solver: Solver, search: Search): number {
  switch (alternative.type) {
    case "null":
      return 1;
    case "boolean":
      return alternative.values?.length ?? 2;
    case "number":
      return alternative.values?.length ?? numbersIn(alternative.schema);
    case "string":
      return alternative.values?.length ?? stringsIn(alternative.schema, solver);
    case "array":
      return arraysIn(alternative, solver, search);
    case "object":
      return objectsIn(alternative, solver, search);
  }
}

function numbersIn(schema: JsonObject): number {
  if (Array.isArray(schema["allOf"])) return 0;
  const [low, above] = [
    Number(schema["minimum"] ?? -Infinity),
    Number(schema["exclusiveMinimum"] ?? -Infinity),
  ];
  const [high, below] = [
    Number(schema["maximum"] ?? Infinity),
    Number(schema["exclusiveMaximum"] ?? Infinity),
  ];
  const isStepped = schema["type"] === "integer" || "multipleOf" in schema;
  if (!isStepped) return Math.min(high, below) > Math.max(low, above) ? Infinity : 1;
  const step = Number(schema["multipleOf"] ?? 1);
  const first = Math.max(Math.ceil(low / step), Math.floor(above / step) + 1);
  const last = Math.min(Math.floor(high / step), Math.ceil(below / step) - 1);
  // Of an integer, steps that are no integers are not all there.
  return step % 1 === 0 || schema["type"] !== "integer" ? Math.max(0, last - first + 1) : 1;
}

function stringsIn(schema: JsonObject, { count }: Solver): number {
  const { minLength = 0, maxLength = Infinity } = schema;
  const patterns = ((schema["allOf"] ?? [schema]) as JsonObject[]).flatMap(({ pattern }) =>
    typeof pattern === "string" ? [pattern] : [],
  );
  if (patterns.length === 0) return Number(maxLength) === 0 ? 1 : Infinity;
  count(patterns.join("").length * perCharacter);
  try {
    const [first, ...others] = patterns.map(parseRegex);
    const texts = [...textsOf(first!)].filter(
      (text) =>
        text.length >= Number(minLength) &&
        Array.from(text).length <= Number(maxLength) &&
        others.every((other) => matches(other, text, count)),
    );
    return texts.length < manyTexts ? texts.length : Infinity;
  } catch (error) {
    if (error instanceof RegexError) return 0;
    throw error;
  }
}

/** As many as there are items of any list. */
const manyTexts = 500;
/** So many texts are looked at. */
const mostTexts = 1000;

/** Different texts that it matches: all, or so many. */
function textsOf(regex: Regex): ReadonlySet<string> {
  switch (regex.kind) {
    case "set":
      return new Set(charactersOf(regex));
    case "concat":
      return regex.parts.map(textsOf).reduce(joined, new Set([""]));
    case "or":
      return united(regex.options.map(textsOf));
    case "repeat": {
      const body = textsOf(regex.body);
      let row: ReadonlySet<string> = new Set([""]);
      const rows: ReadonlySet<string>[] = regex.min === 0 ? [row] : [];
      const last = Math.min(regex.max, regex.min + mostTexts);
      for (let count = 1; count <= last && united(rows).size < mostTexts; count++) {
        row = joined(row, body);
        if (count >= regex.min) rows.push(row);
        if (row.size === 0) break;
      }
      return united(rows);
    }
    default:
      return new Set([""]);
  }
}

function* charactersOf(set: CharacterSet): Generator<string> {
  let left = mostTexts;
  for (const [first, last] of rangesOf(set))
    for (let code = first; code <= last && left > 0; code++, left--)
      yield String.fromCodePoint(code);
}

function joined(begins: ReadonlySet<string>, ends: ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set<string>();
  for (const begin of begins)
    for (const end of ends) if (all.size < mostTexts) all.add(begin + end);
  return all;
}

function united(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  const all = new Set<string>();
  for (const set of sets) for (const text of set) if (all.size < mostTexts) all.add(text);
  return all;
}

function arraysIn(
  { prefix, rest, min, max, distinct, unique }: ArrayAlternative,
  solver: Solver,
  search: Search,
): number {
  if (distinct !== undefined) return distinct.length;
  if (search.depth >= deepest || min > 1000) return 1;
  const inner = { ...search, depth: search.depth + 1 };
  const first = max === 0 ? 1 : sizeOf(prefix[0] ?? rest, solver, inner);
  const others = min === 0 ? 1 : 0;
  if (unique !== undefined || prefix.length > 0) return Math.max(first, others);
  if (max === Infinity && first > 0) return Infinity;
  return first ** Math.max(1, Math.min(max, 2)) + others;
}

function objectsIn(
  { properties, rest, min, max, patterns }: ObjectAlternative,
  solver: Solver,
  search: Search,
): number {
  if (search.depth >= deepest || min > properties.length) return 1;
  const isOpen = patterns.length === 0 && solver.mayHold(rest.literals);
  if (isOpen && max === Infinity) return Infinity;
  if (max < properties.length) return 1;
  let size = 1;
  for (const { state, required } of properties) {
    const values = sizeOf(state, solver, { ...search, depth: search.depth + 1 });
    size *= required ? values : 1 + (min === 0 ? values : 0);
    if (size >= search.enough) break;
  }
  return size;
}
