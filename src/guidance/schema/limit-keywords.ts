/** Keywords that are one number: the least or the most of something. */

import type { Facts } from "./facts.ts";
import { type Keyword, Unsupported } from "./keywords.ts";
import type { JsonType } from "./types.ts";

type LowerLimit = "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties";
type UpperLimit = "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties";
type Change = (facts: Facts, limit: number) => void;

/** What fails a limit keeps the opposite one; between whole numbers it is a step further. */
export const limitKeywords: Record<string, Keyword> = {
  minimum: limit("number", expectNumber, atLeast("minimum"), atMost("exclusiveMaximum")),
  maximum: limit("number", expectNumber, atMost("maximum"), atLeast("exclusiveMinimum")),
  exclusiveMinimum: limit("number", expectNumber, atLeast("exclusiveMinimum"), atMost("maximum")),
  exclusiveMaximum: limit("number", expectNumber, atMost("exclusiveMaximum"), atLeast("minimum")),
  minLength: limit("string", expectCount, atLeast("minLength"), atMost("maxLength", -1)),
  maxLength: limit("string", expectCount, atMost("maxLength"), atLeast("minLength", 1)),
  minItems: limit("array", expectCount, atLeast("minItems"), atMost("maxItems", -1)),
  maxItems: limit("array", expectCount, atMost("maxItems"), atLeast("minItems", 1)),
  minProperties: limit(
    "object",
    expectCount,
    atLeast("minProperties"),
    atMost("maxProperties", -1),
  ),
  maxProperties: limit("object", expectCount, atMost("maxProperties"), atLeast("minProperties", 1)),
};

function limit(
  type: JsonType,
  read: (value: unknown) => number,
  holds: Change,
  fails: Change,
): Keyword {
  const way =
    (change: Change): Keyword["holds"] =>
    (value) => [
      {
        change: (facts) => {
          change(facts, read(value));
          return facts.hasRoom();
        },
      },
    ];
  return { types: [type], holds: way(holds), fails: way(fails) };
}

function atLeast(field: LowerLimit, step = 0): Change {
  return (facts, value) => {
    facts[field] = Math.max(facts[field], value + step);
  };
}

function atMost(field: UpperLimit, step = 0): Change {
  return (facts, value) => {
    facts[field] = Math.min(facts[field], value + step);
  };
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
