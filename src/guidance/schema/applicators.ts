/** Keywords that combine subschemas of the same place, and those that list values. */

import { type Outline, areDisjointObjects, haveTag, outlineOf } from "./disjoint.ts";
import { isJsonObject } from "./json.ts";
import {
  type Keyword,
  type KeywordContext,
  type Way,
  Unsupported,
  always,
  never,
} from "./keywords.ts";
import type { Literal, Scalar } from "./facts.ts";
import type { JsonType } from "./types.ts";

const MAX_NEGATED_ONE_OF = 8;

export const applicators: Record<string, Keyword> = {
  $ref: reference((_value, _context) => true),
  $dynamicRef: reference((value, { document }) => document.isStatic(value)),
  $recursiveRef: {
    holds: () => unsupported("depends on where the schema is used from"),
    fails: () => unsupported("depends on where the schema is used from"),
  },
  allOf: {
    holds: (value, context) => [{ literals: each(value, context, "allOf", true) }],
    fails: (value, context) => each(value, context, "allOf", false).map(only),
  },
  anyOf: {
    holds: (value, context) => each(value, context, "anyOf", true).map(only),
    fails: (value, context) => [{ literals: each(value, context, "anyOf", false) }],
  },
  oneOf: { holds: exactlyOne, fails: notExactlyOne },
  not: {
    holds: (_value, context) => [{ literals: [context.literal(false, "not")] }],
    fails: (_value, context) => [{ literals: [context.literal(true, "not")] }],
  },
  if: {
    holds: (_value, context) => conditional(context, true),
    fails: (_value, context) => conditional(context, false),
  },
  type: {
    holds: (value, context) => hasType(value, context.type),
    fails: (value, context) => lacksType(value, context.type),
  },
  const: {
    holds: (value, context) => isOneOf([value], context),
    fails: (value, context) => isNoneOf([value], context),
  },
  enum: {
    holds: (value, context) => isOneOf(list(value), context),
    fails: (value, context) => isNoneOf(list(value), context),
  },
};

function unsupported(reason: string): never {
  throw new Unsupported(reason);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : unsupported("must be an array");
}

function only(literal: Literal): Way {
  return { literals: [literal] };
}

function each(value: unknown, context: KeywordContext, keyword: string, holds: boolean): Literal[] {
  return list(value).map((_, index) => context.literal(holds, keyword, index));
}

function reference(isKnown: (value: string, context: KeywordContext) => boolean): Keyword {
  const ways = (value: unknown, context: KeywordContext, holds: boolean): Way[] => {
    if (typeof value !== "string") unsupported("must be a string");
    if (!isKnown(value, context)) unsupported("depends on where the schema is used from");
    const node = context.document.resolve(context.node, value);
    if (node === null) unsupported("leads to nothing in this document; others are not fetched");
    return [{ literals: [{ node, holds, scopes: holds ? context.scopes : [] }] }];
  };
  return {
    holds: (value, context) => ways(value, context, true),
    fails: (value, context) => ways(value, context, false),
  };
}

/** Branches that cannot hold together need not exclude each other. */
function exactlyOne(value: unknown, context: KeywordContext): Way[] {
  const { document, type } = context;
  const branches = each(value, context, "oneOf", true)
    .map((literal, index) => ({ literal, index, outline: outlineOf(document, literal.node) }))
    .filter(({ outline }) => mayBe(outline, type));
  const holding = branches.map(({ literal }) => literal);
  const failing = branches.map(({ index }) => context.literal(false, "oneOf", index));
  const outlines = type === "object" ? branches.map(({ outline }) => outline) : [];
  const ways = holding.map((literal): Way => ({ literals: [literal] }));
  if (haveTag(outlines)) return ways;
  for (let i = 0; i < holding.length; i++) {
    for (let j = i + 1; j < holding.length; j++) {
      if (areDisjointObjects(outlines[i] ?? null, outlines[j] ?? null)) continue;
      if (!context.mayHold([holding[i]!, holding[j]!])) continue;
      ways[i]!.literals!.push(failing[j]!);
      ways[j]!.literals!.push(failing[i]!);
    }
  }
  return ways;
}

function mayBe(outline: Outline | null, type: JsonType): boolean {
  const types = outline?.types;
  return (
    types === undefined || types.includes(type) || (type === "number" && types.includes("integer"))
  );
}

function notExactlyOne(value: unknown, context: KeywordContext): Way[] {
  const holding = each(value, context, "oneOf", true);
  if (holding.length > MAX_NEGATED_ONE_OF) unsupported("is negated and has too many branches");
  const ways: Way[] = [{ literals: each(value, context, "oneOf", false) }];
  for (let i = 0; i < holding.length; i++)
    for (let j = i + 1; j < holding.length; j++)
      ways.push({ literals: [holding[i]!, holding[j]!] });
  return ways;
}

function conditional(context: KeywordContext, holds: boolean): Way[] {
  const { schema } = context;
  const ways: Way[] = [];
  for (const [condition, branch] of [
    [true, "then"],
    [false, "else"],
  ] as const) {
    const isThere = branch in schema;
    if (!isThere && !holds) continue;
    const literals = [context.literal(condition, "if")];
    if (isThere) literals.push(context.literal(holds, branch));
    ways.push({ literals });
  }
  // Without then and else it says nothing.
  return holds && !("then" in schema) && !("else" in schema) && context.scopes.length === 0
    ? always
    : ways;
}

function typesOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

function hasType(value: unknown, type: JsonType): Way[] {
  const types = typesOf(value);
  if (types.includes(type)) return always;
  if (type !== "number" || !types.includes("integer")) return never;
  return [
    {
      change: (facts) => {
        if (facts.integer === false) return false;
        facts.integer = true;
        return true;
      },
    },
  ];
}

function lacksType(value: unknown, type: JsonType): Way[] {
  const types = typesOf(value);
  if (types.includes(type)) return never;
  if (type !== "number" || !types.includes("integer")) return always;
  return [
    {
      change: (facts) => {
        if (facts.integer === true) return false;
        facts.integer = false;
        return true;
      },
    },
  ];
}

function typeOf(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value as JsonType;
}

function isOneOf(values: readonly unknown[], context: KeywordContext): Way[] {
  const fitting = values.filter((value) => typeOf(value) === context.type);
  if (context.type === "array" || context.type === "object")
    return fitting.map((value) => only(structure(value, context, true)));
  return fitting.length === 0
    ? never
    : [{ change: (facts) => facts.restrict(fitting as Scalar[]) }];
}

function isNoneOf(values: readonly unknown[], context: KeywordContext): Way[] {
  const fitting = values.filter((value) => typeOf(value) === context.type);
  if (context.type === "array" || context.type === "object")
    return [{ literals: fitting.map((value) => structure(value, context, false)) }];
  return [
    {
      change: (facts) => {
        facts.excluded.push(...(fitting as Scalar[]));
        return true;
      },
    },
  ];
}

/** A constant object or array as keywords. */
function structure(value: unknown, { document, node }: KeywordContext, holds: boolean): Literal {
  const constants = (items: readonly unknown[]): unknown[] =>
    items.map((item) => ({ const: item }));
  let schema: unknown;
  if (Array.isArray(value)) {
    const tuple = constants(value);
    const items =
      document.draft === "draft-07"
        ? tuple.length > 0
          ? { items: tuple }
          : {}
        : { prefixItems: tuple };
    schema = { ...items, minItems: value.length, maxItems: value.length };
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
