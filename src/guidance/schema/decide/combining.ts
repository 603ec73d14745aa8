/** Keywords that combine subschemas of the same place. */

import type { Literal } from "../types.ts";
import type { Facts } from "./facts.ts";
import {
  type Keyword,
  type KeywordContext,
  type Way,
  always,
  expectList,
  mistaken,
  unsupported,
} from "./keyword.ts";
import { areDisjointObjects, haveTag, mayBe, outlineOf, tagNameOf } from "./tagged-union.ts";

const maxNegatedOneOf = 8;
/** Of the branches of an `anyOf` beside `unevaluated…`. */
const maxSelected = 4;

export const combiningKeywords: Record<string, Keyword> = {
  $ref: { ways: (value, context) => reference(value, context, "resolve") },
  $dynamicRef: { ways: (value, context) => reference(value, context, "resolveDynamic") },
  $recursiveRef: { ways: (value, context) => reference(value, context, "resolveDynamic") },
  allOf: {
    ways: (value, context) =>
      context.holds ? together(value, context, "allOf") : anyOne(value, context, "allOf"),
  },
  anyOf: {
    ways: (value, context) => {
      if (!context.holds) return together(value, context, "anyOf");
      const branches = taggedBranches(value, context, "anyOf");
      return context.scopes.length > 0
        ? selectedBranches(branches)
        : branches.map(({ way }) => way);
    },
  },
  oneOf: {
    ways: (value, context) =>
      context.holds ? exactlyOne(value, context) : notExactlyOne(value, context),
  },
  not: { ways: (_value, context) => [{ literals: [context.literal(!context.holds, "not")] }] },
  if: { ways: conditional },
};

function reference(
  value: unknown,
  { document, node, holds, scopes }: KeywordContext,
  resolve: "resolve" | "resolveDynamic",
): Way[] {
  if (typeof value !== "string") mistaken("must be a string");
  const target = document[resolve](node, value);
  if (target === null)
    unsupported("points to nothing in this document; other documents are not fetched");
  return [{ literals: [{ node: target, holds, scopes }] }];
}

function each(
  value: unknown,
  context: KeywordContext,
  keyword: string,
  holds: boolean = context.holds,
): Literal[] {
  return expectList(value).map((_, index) => context.literal(holds, keyword, index));
}

function together(value: unknown, context: KeywordContext, keyword: string): Way[] {
  return [{ literals: each(value, context, keyword) }];
}

function anyOne(value: unknown, context: KeywordContext, keyword: string): Way[] {
  return each(value, context, keyword).map((literal) => ({ literals: [literal] }));
}

interface TaggedWay extends Way {
  literals: Literal[];
}

/**
 * Each branch as a way. OpenAPI's `discriminator` names the property that tells them apart: what reads the values needs
 * it, also where a default lets the branches leave it out.
 */
function taggedBranches(value: unknown, context: KeywordContext, keyword: "anyOf" | "oneOf") {
  const { document, schema, type } = context;
  const tag = type === "object" ? tagNameOf(schema) : undefined;
  return each(value, context, keyword).map((literal, index) => {
    const outline = outlineOf(document, literal.node, tag);
    const isTagged = tag !== undefined && outline?.values.has(tag) === true;
    const way: TaggedWay = {
      literals: [literal],
      ...(isTagged ? { change: (facts: Facts) => facts.required.add(tag) } : {}),
    };
    return { way, literal, index, outline };
  });
}

/** Keywords that evaluate nothing, alone or with what is beside them. */
const evaluatesNothing = new Set([
  "required",
  "type",
  "not",
  "minProperties",
  "maxProperties",
  "title",
  "description",
]);

/** What several branches evaluate counts together: each selection of those that evaluate something is a way. */
function selectedBranches(branches: ReturnType<typeof taggedBranches>): Way[] {
  const [some, none] = [true, false].map((evaluates) =>
    branches
      .filter(
        ({ literal: { node } }) =>
          Object.keys(node.schema).some((keyword) => !evaluatesNothing.has(keyword)) === evaluates,
      )
      .map(({ way }) => way),
  ) as [TaggedWay[], TaggedWay[]];
  if (some.length > maxSelected) return [...some, ...none];
  const selections = Array.from({ length: 2 ** some.length - 1 }, (_, index) =>
    some.filter((_way, place) => (index + 1) & (1 << place)),
  );
  const together = selections.map((selected): Way => ({
    literals: selected.flatMap(({ literals }) => literals),
    change: (facts) => selected.every(({ change }) => change?.(facts) !== false),
  }));
  return [...together, ...none];
}

/** Branches that cannot hold together need not exclude each other. */
function exactlyOne(value: unknown, context: KeywordContext): Way[] {
  const { type } = context;
  const branches = taggedBranches(value, context, "oneOf")
    .filter(({ outline }) => mayBe(outline, type))
    .map((branch) => ({ ...branch, failing: context.literal(false, "oneOf", branch.index) }));
  const ways = branches.map(({ way }) => way);
  const isObject = type === "object";
  if (isObject && haveTag(branches.map(({ outline }) => outline))) return ways;
  branches.forEach((one, i) => {
    for (let j = i + 1; j < branches.length; j++) {
      const other = branches[j]!;
      if (isObject && areDisjointObjects(one.outline, other.outline)) continue;
      if (!context.mayHold([one.literal, other.literal])) continue;
      ways[i]!.literals.push(other.failing);
      ways[j]!.literals.push(one.failing);
    }
  });
  return ways;
}

function notExactlyOne(value: unknown, context: KeywordContext): Way[] {
  const holding = each(value, context, "oneOf", true);
  if (holding.length > maxNegatedOneOf) unsupported("is negated and has too many branches");
  const pairs = holding.flatMap((one, index) =>
    holding.slice(index + 1).map((other) => ({ literals: [one, other] })),
  );
  return [...together(value, context, "oneOf"), ...pairs];
}

function conditional(_value: unknown, context: KeywordContext): Way[] {
  const { schema, holds, scopes } = context;
  const hasBranch = "then" in schema || "else" in schema;
  if (holds && !hasBranch && scopes.length === 0) return always;
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
  return ways;
}
