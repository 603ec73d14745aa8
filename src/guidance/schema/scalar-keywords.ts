/** Keywords of numbers and strings. */

import type { Facts, PatternFact } from "./facts.ts";
import { formatOf } from "./formats.ts";
import {
  type Keyword,
  type KeywordContext,
  type Way,
  Unsupported,
  always,
  never,
} from "./keywords.ts";
import { RegexError, parseRegex } from "./regex.ts";

function numeric(
  holds: (facts: Facts, limit: number) => void,
  fails: (facts: Facts, limit: number) => void,
): Keyword {
  const way =
    (change: (facts: Facts, limit: number) => void) =>
    (value: unknown): Way[] => [{ change: (facts) => (change(facts, expectNumber(value)), true) }];
  return { types: ["number"], holds: way(holds), fails: way(fails) };
}

const setMinimum = (facts: Facts, limit: number): void => {
  facts.minimum = Math.max(facts.minimum, limit);
};
const setMaximum = (facts: Facts, limit: number): void => {
  facts.maximum = Math.min(facts.maximum, limit);
};
const setAbove = (facts: Facts, limit: number): void => {
  facts.exclusiveMinimum = Math.max(facts.exclusiveMinimum, limit);
};
const setBelow = (facts: Facts, limit: number): void => {
  facts.exclusiveMaximum = Math.min(facts.exclusiveMaximum, limit);
};

/** Draft 4 had booleans beside `minimum`; they are read so. */
function exclusive(keyword: Keyword, beside: "minimum" | "maximum"): Keyword {
  const limitOf = (value: unknown, { schema }: KeywordContext): unknown =>
    value === true ? schema[beside] : value;
  return {
    types: ["number"],
    holds: (value, context) =>
      value === false ? always : keyword.holds(limitOf(value, context), context),
    fails: (value, context) =>
      value === false ? never : keyword.fails(limitOf(value, context), context),
  };
}

export const scalarKeywords: Record<string, Keyword> = {
  minimum: numeric(setMinimum, setBelow),
  maximum: numeric(setMaximum, setAbove),
  exclusiveMinimum: exclusive(numeric(setAbove, setMaximum), "minimum"),
  exclusiveMaximum: exclusive(numeric(setBelow, setMinimum), "maximum"),
  multipleOf: {
    types: ["number"],
    holds: (value) => {
      const multiple = Math.abs(expectNumber(value));
      if (!isShort(multiple)) throw new Unsupported("has too many digits");
      return [{ change: (facts) => facts.multiples.push(multiple) > 0 }];
    },
    fails: () => {
      throw new Unsupported("is negated: numbers that are no multiple cannot be described");
    },
  },
  minLength: length(
    "minLength",
    (facts, limit) => {
      facts.minLength = Math.max(facts.minLength, limit);
    },
    (facts, limit) => {
      facts.maxLength = Math.min(facts.maxLength, limit - 1);
    },
  ),
  maxLength: length(
    "maxLength",
    (facts, limit) => {
      facts.maxLength = Math.min(facts.maxLength, limit);
    },
    (facts, limit) => {
      facts.minLength = Math.max(facts.minLength, limit + 1);
    },
  ),
  pattern: {
    types: ["string"],
    holds: (value, { node }) => {
      const pattern = readPattern(value, node);
      return [{ change: (facts) => facts.patterns.push(pattern) > 0 }];
    },
    fails: () => {
      throw new Unsupported("is negated: text that does not match cannot be described");
    },
  },
  format: {
    types: ["string"],
    holds: (value) => {
      const format = typeof value === "string" ? formatOf(value) : "annotation";
      if (format === "annotation") return always;
      if (format === "unmasked") throw new Unsupported(`has a format that no mask knows`);
      return [{ change: (facts) => facts.formats.push(value as string) > 0 }];
    },
    fails: (value) => {
      const format = typeof value === "string" ? formatOf(value) : "annotation";
      if (format === "annotation") return never;
      throw new Unsupported("is negated: text that is not of the format cannot be described");
    },
  },
};

function length(
  _name: string,
  holds: (facts: Facts, limit: number) => void,
  fails: (facts: Facts, limit: number) => void,
): Keyword {
  const way =
    (change: (facts: Facts, limit: number) => void) =>
    (value: unknown): Way[] => [
      {
        change: (facts) => {
          change(facts, expectCount(value));
          return facts.minLength <= facts.maxLength;
        },
      },
    ];
  return { types: ["string"], holds: way(holds), fails: way(fails) };
}

/** The mask engine takes 32 bits of digits. */
function isShort(value: number): boolean {
  let scaled = value;
  while (scaled % 1 !== 0 && scaled < 2 ** 32) scaled *= 10;
  return scaled > 0 && scaled < 2 ** 32;
}

export function expectNumber(value: unknown): number {
  if (typeof value !== "number") throw new Unsupported("must be a number");
  return value;
}

/** A count may be written 2.0. */
export function expectCount(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0)
    throw new Unsupported("must be a whole number, 0 or more");
  return value;
}

/** @throws Unsupported what no automaton can do */
export function readPattern(value: unknown, node: PatternFact["node"]): PatternFact {
  if (typeof value !== "string") throw new Unsupported("must be a string");
  try {
    return { source: value, regex: parseRegex(value), node };
  } catch (error) {
    if (error instanceof RegexError) throw new Unsupported(`has a pattern that ${error.message}`);
    throw error;
  }
}
