/** `type`, `const` and `enum`, and the two types that have nothing else: null and booleans. */

import { isJsonObject } from "../../../json.ts";
import type { JsonType, Literal, Scalar, ScalarAlternative } from "../types.ts";
import type { Facts } from "./facts.ts";
import {
  type Keyword,
  type KeywordContext,
  type Way,
  always,
  expectList,
  fact,
  jsonTypes,
  mistaken,
  never,
} from "./keyword.ts";

export const constantKeywords: Record<string, Keyword> = {
  type: { ways: ofType },
  const: { ways: (value, context) => ofValues([value], context, "const") },
  enum: { ways: (value, context) => ofValues(expectList(value), context, "enum") },
};

export function nulls(facts: Facts): ScalarAlternative[] {
  return facts.excluded.length > 0
    ? []
    : [{ type: "null", schema: { type: "null" }, values: [null] }];
}

export function booleans(facts: Facts): ScalarAlternative[] {
  const excluded = new Set(facts.excluded.map(({ value }) => value));
  const values = (facts.values ?? [true, false]).filter((value) => !excluded.has(value));
  if (values.length === 0) return [];
  const schema = values.length === 2 ? { type: "boolean" } : { const: values[0] };
  return [{ type: "boolean", schema, values }];
}

const knownTypes: ReadonlySet<unknown> = new Set([...jsonTypes, "integer"]);

/** Names of other languages (`int`, `str`) are no types, and say nothing. */
function ofType(value: unknown, { type, holds, node: { path } }: KeywordContext): Way[] {
  const types: unknown[] = Array.isArray(value) ? value : [value];
  if (types.some((one) => !knownTypes.has(one))) mistaken("names no type of JSON Schema");
  if (types.includes(type)) return holds ? always : never;
  if (type !== "number" || !types.includes("integer")) return holds ? never : always;
  return fact((facts) => {
    if (facts.integer === !holds) return false;
    facts.integer = holds;
    if (!holds) facts.notInteger = { path, keyword: "type" };
    return true;
  });
}

function typeOf(value: unknown): JsonType {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as JsonType);
}

function ofValues(values: readonly unknown[], context: KeywordContext, keyword: string): Way[] {
  const {
    type,
    holds,
    node: { path },
  } = context;
  const fitting = values.filter((value) => typeOf(value) === type);
  if (type === "array" || type === "object") {
    const literals = fitting.map((value) => structure(value, context));
    return holds ? literals.map((literal) => ({ literals: [literal] })) : [{ literals }];
  }
  if (!holds) {
    const excluded = (fitting as Scalar[]).map((value) => ({ value, path, keyword }));
    return fact((facts) => facts.excluded.push(...excluded));
  }
  return fitting.length === 0 ? never : fact((facts) => facts.restrict(fitting as Scalar[]));
}

/** A constant array or object as keywords. */
function structure(value: unknown, { document, node, holds }: KeywordContext): Literal {
  const constants = (items: readonly unknown[]): unknown[] =>
    items.map((item) => ({ const: item }));
  let schema: unknown;
  if (Array.isArray(value)) {
    const size = { minItems: value.length, maxItems: value.length };
    const tuple = constants(value);
    if (document.draft === "draft-2020-12") schema = { prefixItems: tuple, ...size };
    else schema = tuple.length > 0 ? { items: tuple, ...size } : size;
  } else if (isJsonObject(value)) {
    const names = Object.keys(value);
    const items = constants(Object.values(value));
    schema = {
      properties: Object.fromEntries(names.map((name, index) => [name, items[index]])),
      required: names,
      ...(holds ? { additionalProperties: false } : { maxProperties: names.length }),
    };
  }
  return { node: document.make(schema, node.path), holds, scopes: [] };
}
