/** Keywords of arrays and objects, but for limits. */

import type { Literal, PatternFact, RestFact } from "./facts.ts";
import { isJsonObject } from "./json.ts";
import {
  type Keyword,
  type KeywordContext,
  type Way,
  Unsupported,
  always,
  never,
} from "./keywords.ts";
import { expectCount } from "./limit-keywords.ts";
import { matches } from "./regex-match.ts";
import { readPattern } from "./scalar-keywords.ts";

export const arrayKeywords: Record<string, Keyword> = {
  prefixItems: {
    types: ["array"],
    holds: (value, context) => tuple(value, context, "prefixItems", true),
    fails: (value, context) => tuple(value, context, "prefixItems", false),
  },
  items: {
    types: ["array"],
    holds: (value, context) =>
      Array.isArray(value)
        ? tuple(value, context, "items", true)
        : rest(context, "items", tupleLength(context.schema["prefixItems"]), true),
    fails: (value, context) =>
      Array.isArray(value)
        ? tuple(value, context, "items", false)
        : rest(context, "items", tupleLength(context.schema["prefixItems"]), false),
  },
  additionalItems: {
    types: ["array"],
    holds: (_value, context) =>
      Array.isArray(context.schema["items"])
        ? rest(context, "additionalItems", context.schema["items"].length, true)
        : always,
    fails: (_value, context) =>
      Array.isArray(context.schema["items"])
        ? rest(context, "additionalItems", context.schema["items"].length, false)
        : never,
  },
  contains: {
    types: ["array"],
    holds: (_value, context) => {
      const { min, max } = containsLimits(context);
      const literal = context.literal(true, "contains");
      const { node, scopes } = context;
      return [
        {
          change: (facts) => {
            facts.contains.push({ from: 0, min, max, literal, node });
            for (const scope of scopes) facts.scopes[scope]!.contains = true;
            return min <= max;
          },
        },
      ];
    },
    fails: (_value, context) => {
      const { min, max } = containsLimits(context);
      const literal = { ...context.literal(true, "contains"), scopes: [] };
      const { node } = context;
      const ways: Way[] = [];
      if (min > 0)
        ways.push({
          change: (facts) =>
            facts.contains.push({ from: 0, min: 0, max: min - 1, literal, node }) > 0,
        });
      if (max < Infinity)
        ways.push({
          change: (facts) =>
            facts.contains.push({ from: 0, min: max + 1, max: Infinity, literal, node }) > 0,
        });
      return ways;
    },
  },
  uniqueItems: {
    types: ["array"],
    holds: (value, { node }) =>
      value === true ? [{ change: (facts) => ((facts.unique = node), true) }] : always,
    fails: (value) => {
      if (value !== true) return never;
      throw new Unsupported("is negated: arrays with a repeated item cannot be described");
    },
  },
  unevaluatedItems: {
    types: ["array"],
    // Read where the scope is opened.
    holds: () => always,
    fails: () => {
      throw new Unsupported("is negated");
    },
  },
};

function containsLimits({ schema }: KeywordContext): { min: number; max: number } {
  const { minContains, maxContains } = schema;
  return {
    min: minContains === undefined ? 1 : expectCount(minContains),
    max: maxContains === undefined ? Infinity : expectCount(maxContains),
  };
}

function tupleLength(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

function tuple(value: unknown, context: KeywordContext, keyword: string, holds: boolean): Way[] {
  if (!Array.isArray(value)) throw new Unsupported("must be an array");
  const literals = value.map((_, index) => context.literal(holds, keyword, index));
  const { scopes } = context;
  if (holds)
    return [
      {
        change: (facts) => {
          literals.forEach((literal, index) => facts.prefix.push({ index, literal }));
          for (const id of scopes) {
            const scope = facts.scopes[id]!;
            scope.itemCount = Math.max(scope.itemCount, literals.length);
          }
          return true;
        },
      },
    ];
  return literals.map((literal, index) => ({
    change: (facts) => {
      facts.minItems = Math.max(facts.minItems, index + 1);
      facts.prefix.push({ index, literal });
      return true;
    },
  }));
}

function rest(context: KeywordContext, keyword: string, from: number, holds: boolean): Way[] {
  const literal = context.literal(holds, keyword);
  const { scopes, node } = context;
  if (holds)
    return [
      {
        change: (facts) => {
          facts.items.push({ from, literal });
          for (const id of scopes) facts.scopes[id]!.allItems = true;
          return true;
        },
      },
    ];
  return [
    {
      change: (facts) => facts.contains.push({ from, min: 1, max: Infinity, literal, node }) > 0,
    },
  ];
}

export const objectKeywords: Record<string, Keyword> = {
  properties: {
    types: ["object"],
    holds: (value, context) => {
      const { scopes } = context;
      const entries = keysOf(value).map(
        (name) => [name, context.literal(true, "properties", name)] as const,
      );
      return [
        {
          change: (facts) => {
            facts.namesProperties = true;
            for (const [name, literal] of entries) facts.addProperty(name, literal);
            for (const id of scopes)
              for (const [name] of entries) facts.scopes[id]!.names.add(name);
            return true;
          },
        },
      ];
    },
    fails: (value, context) =>
      keysOf(value).map((name) => hasProperty(name, context.literal(false, "properties", name))),
  },
  required: {
    types: ["object"],
    holds: (value) => [
      { change: (facts) => (strings(value).forEach((name) => facts.required.add(name)), true) },
    ],
    fails: (value, context) => strings(value).map((name) => lacks(name, context)),
  },
  additionalProperties: {
    types: ["object"],
    holds: (_value, context) => {
      const { scopes, schema } = context;
      const literal = context.literal(true, "additionalProperties");
      const patterns = patternsOf(context);
      const fact: RestFact = {
        names: new Set(keysOf(schema["properties"] ?? {})),
        patterns,
        literal,
      };
      return [
        {
          change: (facts) => {
            facts.rest.push(fact);
            for (const id of scopes) facts.scopes[id]!.allProperties = true;
            return true;
          },
        },
      ];
    },
    fails: (_value, context) => {
      const names = keysOf(context.schema["properties"] ?? {});
      if (context.schema["additionalProperties"] === true) return never;
      void names;
      throw new Unsupported("is negated: an object with some other property cannot be described");
    },
  },
  patternProperties: {
    types: ["object"],
    holds: (value, context) => {
      const { scopes, node } = context;
      const entries = keysOf(value).map((source) => ({
        pattern: readPattern(source, node),
        literal: context.literal(true, "patternProperties", source),
      }));
      return [
        {
          change: (facts) => {
            facts.patternProperties.push(...entries);
            for (const id of scopes)
              facts.scopes[id]!.patterns.push(...entries.map(({ pattern }) => pattern));
            return true;
          },
        },
      ];
    },
    fails: (value) => {
      if (keysOf(value).length === 0) return never;
      throw new Unsupported("is negated: an object with some such property cannot be described");
    },
  },
  propertyNames: {
    types: ["object"],
    holds: (_value, context) => {
      const literal = context.literal(true, "propertyNames");
      return [{ change: (facts) => facts.names.push(literal) > 0 }];
    },
    fails: (value) => {
      if (value === true) return never;
      throw new Unsupported("is negated: an object with some such name cannot be described");
    },
  },
  unevaluatedProperties: {
    types: ["object"],
    holds: () => always,
    fails: () => {
      throw new Unsupported("is negated");
    },
  },
};

/** Keywords that say "if this property is there, then". Each entry is a choice of its own. */
export const dependencyKeywords = new Set([
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
]);

/** One choice for each entry. */
export function dependencyWays(keyword: string, value: unknown, context: KeywordContext): Way[][] {
  return Object.entries(isJsonObject(value) ? value : {}).map(([name, needed]) => [
    lacks(name, context),
    Array.isArray(needed)
      ? {
          change: (facts) => (
            strings([name, ...needed]).forEach((each) => facts.required.add(each)),
            true
          ),
        }
      : { ...has(name), literals: [context.literal(true, keyword, name)] },
  ]);
}

export function failedDependencyWays(
  keyword: string,
  value: unknown,
  context: KeywordContext,
): Way[] {
  return Object.entries(isJsonObject(value) ? value : {}).flatMap(([name, needed]): Way[] =>
    Array.isArray(needed)
      ? strings(needed).map((missing) => both(has(name), lacks(missing, context)))
      : [{ ...has(name), literals: [context.literal(false, keyword, name)] }],
  );
}

function both(a: Way, b: Way): Way {
  return {
    literals: [...(a.literals ?? []), ...(b.literals ?? [])],
    change: (facts) => (a.change?.(facts) ?? true) && (b.change?.(facts) ?? true),
  };
}

function has(name: string): Way {
  return { change: (facts) => (facts.required.add(name), true) };
}

function hasProperty(name: string, literal: Literal): Way {
  return {
    change: (facts) => {
      facts.required.add(name);
      facts.addProperty(name, literal);
      return true;
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

export function keysOf(value: unknown): string[] {
  if (!isJsonObject(value)) throw new Unsupported("must be an object");
  return Object.keys(value);
}

function strings(value: unknown): string[] {
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string"))
    throw new Unsupported("must be an array of strings");
  return value as string[];
}

function patternsOf({ schema, node }: KeywordContext): PatternFact[] {
  const patterns = schema["patternProperties"];
  return isJsonObject(patterns)
    ? Object.keys(patterns).map((source) => readPattern(source, node))
    : [];
}

export function isMatched(name: string, patterns: readonly PatternFact[]): boolean {
  return patterns.some(({ regex }) => matches(regex, name));
}
