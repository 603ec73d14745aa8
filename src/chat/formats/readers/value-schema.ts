/** What a tool's schema says of a parameter, as it stands there: a property may be behind references and in branches. */

import { boundedRegex } from "../../../guidance/bounded-regex.ts";
import { type JsonObject, isJsonObject, ownEntry, pointerKeys } from "../../../json.ts";

type Types = ReadonlySet<string> | null;

/** A schema, and the one that its references lead through. */
export interface PlacedSchema {
  schema: unknown;
  root: unknown;
}

/** @param schema of a tool's parameters. @returns null when it does not say */
export function propertiesOf(schema: unknown): ReadonlySet<string> | null {
  const keys = partsOf({ schema, root: schema }).flatMap(({ properties }) =>
    isJsonObject(properties) ? Object.keys(properties) : [],
  );
  return keys.length === 0 ? null : new Set(keys);
}

/** @param schema of a tool's parameters. @returns null when it does not say */
export function propertyOf(schema: unknown, key: string): PlacedSchema | null {
  return partOf({ schema, root: schema }, key);
}

/** @param key null: of a list's items. @returns null when it does not say */
export function partOf(placed: PlacedSchema | null, key: string | null): PlacedSchema | null {
  if (placed === null) return null;
  const parts = partsOf(placed);
  for (const { items, properties } of parts) {
    if (key === null && items !== undefined) return { ...placed, schema: items };
    if (key !== null && isJsonObject(properties) && Object.hasOwn(properties, key))
      return { ...placed, schema: properties[key] };
  }
  const free = key === null ? [] : parts.flatMap((part) => ofFreeName(part, key));
  return free.length === 0 ? null : { ...placed, schema: { allOf: free } };
}

/** What a schema says of a property that it does not list. */
function ofFreeName(schema: JsonObject, key: string): unknown[] {
  const { patternProperties, additionalProperties, unevaluatedProperties } = schema;
  const matched = Object.entries(isJsonObject(patternProperties) ? patternProperties : {})
    .filter(([pattern]) => mayMatch(pattern, key))
    .map(([, part]) => part);
  if (matched.length > 0) return matched;
  const rest = additionalProperties ?? unevaluatedProperties;
  return isJsonObject(rest) ? [rest] : [];
}

function mayMatch(pattern: string, key: string): boolean {
  try {
    return boundedRegex(pattern, "u").test(key);
  } catch {
    return false;
  }
}

/** JSON types that it takes; null when it does not say. */
export function typesOf(placed: PlacedSchema | null): Types {
  return placed === null ? null : typesIn(placed.schema, placed.root, new Map());
}

export function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The schema itself, and all that it refers to or is put together from. */
function partsOf({ schema, root }: PlacedSchema): JsonObject[] {
  const parts = new Set<JsonObject>();
  const add = (part: unknown): void => {
    if (!isJsonObject(part) || parts.has(part)) return;
    parts.add(part);
    const { $ref, allOf, anyOf, oneOf } = part;
    for (const inner of [referred($ref, root), allOf, anyOf, oneOf].flat()) add(inner);
  };
  add(schema);
  return [...parts];
}

/** @param known of the schemas that were looked at; one that refers to itself says nothing more */
function typesIn(schema: unknown, root: unknown, known: Map<JsonObject, Types>): Types {
  if (!isJsonObject(schema)) return null;
  const before = known.get(schema);
  if (before !== undefined) return before;
  known.set(schema, null);
  const inner = (part: unknown): Types => typesIn(part, root, known);
  const { $ref, allOf, anyOf, oneOf } = schema;
  const all = [ownTypes(schema), inner(referred($ref, root))];
  if (Array.isArray(allOf)) all.push(...allOf.map(inner));
  for (const branches of [anyOf, oneOf])
    if (Array.isArray(branches)) all.push(union(branches.map(inner)));
  const types = common(all.filter((part) => part !== null));
  known.set(schema, types);
  return types;
}

function common(all: readonly ReadonlySet<string>[]): Types {
  const [first, ...others] = all;
  const types = [...(first ?? [])].filter((type) => others.every((other) => other.has(type)));
  return types.length === 0 ? null : new Set(types);
}

function ownTypes({ type, enum: values, const: only }: JsonObject): Types {
  const named = (name: unknown): string => (name === "integer" ? "number" : String(name));
  if (typeof type === "string") return new Set([named(type)]);
  if (Array.isArray(type)) return new Set(type.map(named));
  if (Array.isArray(values)) return new Set(values.map(typeOf));
  return only === undefined ? null : new Set([typeOf(only)]);
}

function union(branches: readonly Types[]): Types {
  const types = new Set<string>();
  for (const branch of branches) {
    if (branch === null) return null;
    for (const type of branch) types.add(type);
  }
  return types.size === 0 ? null : types;
}

/** References within the document, as JSON pointers. */
function referred(reference: unknown, root: unknown): unknown {
  if (typeof reference !== "string" || !/^#(?:\/|$)/u.test(reference)) return undefined;
  return pointerKeys(decoded(reference)).reduce(ownEntry, root);
}

function decoded(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    return pointer;
  }
}
