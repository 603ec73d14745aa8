/** Keywords of numbers and strings, but for limits. */

import type { PatternFact } from "./facts.ts";
import { formatOf } from "./formats.ts";
import { type Keyword, Unsupported, always, never } from "./keywords.ts";
import { expectNumber } from "./limit-keywords.ts";
import { RegexError, parseRegex } from "./regex.ts";
import { checkCounts } from "./regex-cost.ts";

export const scalarKeywords: Record<string, Keyword> = {
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

/** The mask engine takes 32 bits of digits. */
function isShort(value: number): boolean {
  let scaled = value;
  while (scaled % 1 !== 0 && scaled < 2 ** 32) scaled *= 10;
  return scaled > 0 && scaled < 2 ** 32;
}

/** @throws Unsupported what no automaton can do */
export function readPattern(value: unknown, node: PatternFact["node"]): PatternFact {
  if (typeof value !== "string") throw new Unsupported("must be a string");
  try {
    const regex = parseRegex(value);
    checkCounts(regex);
    return { source: value, regex, node };
  } catch (error) {
    if (error instanceof RegexError) throw new Unsupported(`has a pattern that ${error.message}`);
    throw error;
  }
}
