/** Numbers: what keywords say of them, and their intervals. */

import type { JsonObject, ScalarAlternative } from "../types.ts";
import { fractionKeyword } from "../write/fractions.ts";
import type { Excluded, Facts } from "./facts.ts";
import {
  type Keyword,
  type Limit,
  type Solver,
  atLeast,
  atMost,
  expectNumber,
  fact,
  unsupported,
} from "./keyword.ts";

/** Where a limit fails the opposite one holds. */
export const numberKeywords: Record<string, Keyword> = {
  minimum: limit("minimum", atLeast("minimum"), atMost("exclusiveMaximum")),
  maximum: limit("maximum", atMost("maximum"), atLeast("exclusiveMinimum")),
  exclusiveMinimum: limit("exclusiveMinimum", atLeast("exclusiveMinimum"), atMost("maximum")),
  exclusiveMaximum: limit("exclusiveMaximum", atMost("exclusiveMaximum"), atLeast("minimum")),
  multipleOf: {
    types: ["number"],
    ways: (value, { holds }) => {
      if (!holds) unsupported("is negated: numbers that are not a multiple cannot be described");
      const multiple = Math.abs(expectNumber(value));
      if (!isShort(multiple)) unsupported("has too many digits");
      return fact((facts) => facts.multiples.push(multiple));
    },
  },
};

function limit(keyword: string, holds: Limit, fails: Limit): Keyword {
  return {
    types: ["number"],
    ways: (value, context) => {
      const { path } = context.node;
      const note = (facts: Facts): void => {
        if (isFar(facts)) facts.far ??= { path, keyword };
      };
      return (context.holds ? holds : fails)(expectNumber(value)).map(({ change }) => ({
        change: (facts) => change?.(facts) !== false && (note(facts), true),
      }));
    },
  };
}

/**
 * The mask engine refuses a range that goes further, as that of 64-bit integers does. The largest number below 2^63: what
 * lies beyond is left out.
 */
const furthest = 2 ** 63 - 1024;

/** By the mask, beyond where its ranges end. */
function isReached({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Facts, value: number) {
  if (value >= furthest) return Math.min(maximum, exclusiveMaximum) === Infinity;
  return value <= -furthest && Math.max(minimum, exclusiveMinimum) === -Infinity;
}

/** All that is in the range lies beyond. */
function isFar({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Facts): boolean {
  return (
    Math.max(minimum, exclusiveMinimum) >= furthest ||
    Math.min(maximum, exclusiveMaximum) <= -furthest
  );
}

/** The mask engine takes 32 bits of digits. */
function isShort(value: number): boolean {
  let scaled = value;
  while (scaled % 1 !== 0 && scaled < 2 ** 32) scaled *= 10;
  return scaled > 0 && scaled < 2 ** 32;
}

/** Limits of numbers that are no integers: written in digits. */
const mostWhole = 1e15;

export function numbers(facts: Facts, { report, hasRules }: Solver): ScalarAlternative[] {
  if (facts.values !== null) {
    const excluded = new Set(facts.excluded.map(({ value }) => value));
    const values = facts.values.filter(
      (value) => !excluded.has(value) && isNumberOf(facts, value as number),
    );
    return values.length === 0 ? [] : [{ type: "number", schema: { enum: values }, values }];
  }
  if (facts.notInteger !== null) {
    const fractions = hasRules ? fractionsIn(facts) : null;
    if (fractions !== null) return fractions;
    const reason = "is negated for integer: numbers with a fraction cannot be told from others";
    report({ ...facts.notInteger, reason });
    facts.integer = null;
  }
  const ranges = intervals(facts, report);
  if (facts.far !== null && ranges.length > 0)
    report({ ...facts.far, reason: "is beyond 64 bits, and masks do not count that far" });
  const type = facts.integer === true ? "integer" : "number";
  const written = ranges.flatMap((interval) =>
    [facts.multiples, ...shorterMultiples(facts.multiples)].map((multiples): ScalarAlternative => ({
      type: "number",
      values: null,
      schema: {
        type,
        ...interval,
        ...(multiples.length === 1 ? { multipleOf: multiples[0] } : {}),
        ...(multiples.length > 1 ? { allOf: multiples.map((multipleOf) => ({ multipleOf })) } : {}),
      },
    })),
  );
  const excluded = new Set(facts.excluded.map(({ value }) => value));
  const values = [...new Set(ranges.flatMap(shortenedLimits))].filter(
    (value) => isNumberOf(facts, value) && !excluded.has(value),
  );
  if (values.length > 0) written.push({ type: "number", schema: { enum: values }, values });
  return written;
}

/** Numbers that are no integers. @returns null where more is said of them than integers as limits */
function fractionsIn(facts: Facts): ScalarAlternative[] | null {
  const low = Math.max(facts.minimum, facts.exclusiveMinimum);
  const high = Math.min(facts.maximum, facts.exclusiveMaximum);
  const isLimit = (limit: number): boolean =>
    Math.abs(limit) === Infinity || (Number.isInteger(limit) && Math.abs(limit) <= mostWhole);
  const isPlain = facts.excluded.every(({ value }) => Number.isInteger(value));
  if (!isLimit(low) || !isLimit(high) || !isPlain || facts.multiples.length > 0) return null;
  const limits = [low, high].map((limit) => (Math.abs(limit) === Infinity ? null : limit));
  const schema = { type: "number", [fractionKeyword]: limits };
  return low < high ? [{ type: "number", values: null, schema }] : [];
}

/**
 * What the mask engine misses of multiples: it reads all decimals that they may have, or none. So of 0.25 it takes 0.50 and
 * not 0.5, which is a multiple of 0.25 and of 0.1.
 */
function shorterMultiples(multiples: readonly number[]): number[][] {
  const scales = multiples.map(decimalsOf);
  const isCoprime = multiples.every((multiple, index) => {
    const units = Math.round(multiple * 10 ** scales[index]!);
    return units % 2 !== 0 && units % 5 !== 0;
  });
  const most = isCoprime ? 0 : Math.max(0, ...scales) - 1;
  return Array.from({ length: Math.max(0, most) }, (_, index) => [
    ...multiples,
    Number(`1e-${index + 1}`),
  ]);
}

const mostDecimals = 30;

function decimalsOf(value: number): number {
  let decimals = 0;
  while (Number(value.toFixed(decimals)) !== value && decimals < mostDecimals) decimals += 1;
  return decimals;
}

/**
 * What the mask engine misses in a range: of a limit away from 0 it wants each digit behind the point or another one, so up
 * to 99.95 it takes neither 99.9 nor, for the limits of their ranges, what is shorter still.
 */
function shortenedLimits(range: JsonObject): number[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = range as Record<string, number>;
  const low = minimum ?? exclusiveMinimum ?? 0;
  const high = maximum ?? exclusiveMaximum ?? 0;
  return [Math.min(low, 0), Math.max(high, 0)].flatMap((limit) => {
    const [, whole = "", digits = ""] = /^(-?\d+\.)(\d+)$/u.exec(String(limit)) ?? [];
    return Array.from(digits.slice(0, -1), (_, index) =>
      Number(whole + digits.slice(0, index + 1)),
    );
  });
}

function isNumberOf(facts: Facts, value: number): boolean {
  return (
    value >= facts.minimum &&
    value <= facts.maximum &&
    value > facts.exclusiveMinimum &&
    value < facts.exclusiveMaximum &&
    (facts.integer === null || Number.isInteger(value) === facts.integer) &&
    facts.multiples.every((multiple) => isMultiple(value, multiple))
  );
}

/** Of the decimals as they are written: to a processor 19.99 is no multiple of 0.01. */
export function isMultiple(value: number, of: number): boolean {
  const scale = 10 ** Math.max(decimalsOf(value), decimalsOf(of));
  return Math.round(value * scale) % Math.round(of * scale) === 0;
}

/** The range without the excluded numbers. */
function intervals(facts: Facts, report: Solver["report"]): JsonObject[] {
  if (isFar(facts)) return isInhabited(exactLimits(facts)) ? [{}] : [];
  const holes: number[] = [];
  for (const { value, ...place } of facts.excluded as (Excluded & { value: number })[]) {
    if (!isNumberOf(facts, value)) continue;
    if (Math.abs(value) <= furthest) holes.push(value);
    if (isReached(facts, value)) report({ ...place, reason: "is negated and beyond 64 bits" });
  }
  holes.sort((a, b) => a - b);
  const pieces: JsonObject[] = [];
  let low = lowerLimit(facts);
  for (const hole of new Set(holes)) {
    pieces.push({ ...low, exclusiveMaximum: hole });
    low = { exclusiveMinimum: hole };
  }
  const step = commonMultiple(facts.integer === true ? [1, ...facts.multiples] : facts.multiples);
  return [...pieces, { ...low, ...upperLimit(facts) }]
    .map(withinEngine)
    .filter((range) => isInhabited(range) && (step === null || hasMultiple(range, step)));
}

/** A range that the mask engine would have to write with a digit more than it has, were it open. */
const mostOpen = 1e18;

function withinEngine(range: JsonObject): JsonObject {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = range as Record<string, number>;
  const low = minimum ?? exclusiveMinimum;
  const high = maximum ?? exclusiveMaximum;
  if (low !== undefined && high === undefined && low >= mostOpen)
    return { ...range, maximum: furthest };
  if (high !== undefined && low === undefined && high <= -mostOpen)
    return { ...range, minimum: -furthest };
  return range;
}

function lowerLimit({ minimum, exclusiveMinimum }: Facts): JsonObject {
  const low = Math.max(minimum, exclusiveMinimum);
  if (low > -Infinity && low < -furthest) return { minimum: -furthest };
  if (exclusiveMinimum >= minimum && exclusiveMinimum > -Infinity) return { exclusiveMinimum };
  return minimum > -Infinity ? { minimum } : {};
}

function upperLimit({ maximum, exclusiveMaximum }: Facts): JsonObject {
  const high = Math.min(maximum, exclusiveMaximum);
  if (high < Infinity && high > furthest) return { maximum: furthest };
  if (exclusiveMaximum <= maximum && exclusiveMaximum < Infinity) return { exclusiveMaximum };
  return maximum < Infinity ? { maximum } : {};
}

function exactLimits({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Facts): JsonObject {
  return {
    ...(exclusiveMinimum >= minimum ? { exclusiveMinimum } : { minimum }),
    ...(exclusiveMaximum <= maximum ? { exclusiveMaximum } : { maximum }),
  };
}

/** The mask engine refuses a range without one. Of the decimals as they are written, as `isMultiple`. */
function hasMultiple(range: JsonObject, of: number): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = range as Record<string, number>;
  const low = minimum ?? exclusiveMinimum ?? -Infinity;
  const high = maximum ?? exclusiveMaximum ?? Infinity;
  if (low === -Infinity || high === Infinity || (high - low) / of > 2) return true;
  const scale = 10 ** Math.max(decimalsOf(low), decimalsOf(high), decimalsOf(of));
  const step = Math.round(of * scale);
  const from = Math.round(low * scale) + (minimum === undefined ? 1 : 0);
  const to = Math.round(high * scale) - (maximum === undefined ? 1 : 0);
  return Math.ceil(from / step) * step <= to;
}

/** @returns null where there is none, or none that is exact */
function commonMultiple(steps: readonly number[]): number | null {
  const scale = 10 ** Math.max(0, ...steps.map(decimalsOf));
  let common = 0;
  for (const step of steps) {
    const units = Math.round(step * scale);
    common = common === 0 ? units : (common / commonDivisor(common, units)) * units;
    if (!Number.isSafeInteger(common)) return null;
  }
  return common === 0 ? null : common / scale;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

function isInhabited(range: JsonObject): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = range as Record<string, number>;
  const low = minimum ?? exclusiveMinimum ?? -Infinity;
  const high = maximum ?? exclusiveMaximum ?? Infinity;
  const isOpen = exclusiveMinimum !== undefined || exclusiveMaximum !== undefined;
  return low < high || (low === high && !isOpen);
}
