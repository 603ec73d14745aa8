/** One JSON Schema keyword: what it says of a value of one type. */

import { isJsonObject } from "../../../json.ts";
import type { SchemaDocument } from "../read/document.ts";
import type { Alternative, JsonObject, JsonType, Literal, SchemaIssue } from "../types.ts";
import type { Conjunctions } from "../regex/cost.ts";
import type { Count } from "../steps.ts";
import type { SchemaNode, State } from "../types.ts";
import type { Facts } from "./facts.ts";

export const jsonTypes: readonly JsonType[] = [
  "object",
  "array",
  "string",
  "number",
  "boolean",
  "null",
];

export interface Keyword {
  /** Types that it speaks of; undefined: all. */
  types?: readonly JsonType[];
  /** One of these ways is the case where the keyword holds or, by `context.holds`, where it fails. */
  ways(value: unknown, context: KeywordContext): Way[];
  /** Of a keyword that says several things: the ways of each, where it holds. */
  choices?(value: unknown, context: KeywordContext): Way[][];
}

export interface Way {
  /** Subschemas that hold or do not. */
  literals?: Literal[];
  /** @returns false when no value is left */
  change?: (facts: Facts) => unknown;
}

/** Says nothing. */
export const always: Way[] = [{}];
/** Cannot be. */
export const never: Way[] = [];

/** A schema that no value fails. */
export function isAnything(schema: unknown): boolean {
  return schema === true || (isJsonObject(schema) && Object.keys(schema).length === 0);
}

/** `unevaluated…`, which is read where its scope is opened. */
export function unevaluated(value: unknown, { holds }: KeywordContext): Way[] {
  if (holds) return always;
  return isAnything(value) ? never : unsupported("is negated");
}

/** @param change returns false when no value is left */
export function fact(change: (facts: Facts) => unknown): Way[] {
  return [{ change }];
}

export interface KeywordContext {
  readonly document: SchemaDocument;
  readonly node: SchemaNode;
  readonly schema: JsonObject;
  readonly type: JsonType;
  readonly holds: boolean;
  /** Empty where it fails. */
  readonly scopes: readonly number[];
  readonly count: Count;
  /** A subschema of this node. */
  literal(holds: boolean, ...keys: (string | number)[]): Literal;
  /** Could a value satisfy all of these? True also where it cannot be told. */
  mayHold(literals: readonly Literal[]): boolean;
}

/** What the rules of one type ask about other places. */
export interface Solver {
  /** Objects with named properties have no others unless the schema says so. */
  readonly isClosed: boolean;
  /** What is written in rules can be. */
  readonly hasRules: boolean;
  readonly conjunctions: Conjunctions;
  readonly count: Count;
  report(issue: SchemaIssue): void;
  state(literals: readonly Literal[]): State;
  /** A schema that is not in the document. @param base of references in it */
  made(schema: unknown, base?: string): Literal;
  alternatives(type: JsonType, literals: readonly Literal[]): Alternative[];
  /** Could a value of any type satisfy all of these? True also where it cannot be told. */
  mayHold(literals: readonly Literal[]): boolean;
}

type Problem = Pick<SchemaIssue, "reason" | "isMistake">;

/** No mask can enforce it. */
export class Unsupported extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.reason);
    this.problem = problem;
  }
}

export function unsupported(reason: string): never {
  throw new Unsupported({ reason });
}

/** No draft allows the value. */
export function mistaken(reason: string): never {
  throw new Unsupported({ reason, isMistake: true });
}

export function expectList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : mistaken("must be an array");
}

export function expectNumber(value: unknown): number {
  return typeof value === "number" ? value : mistaken("must be a number");
}

/** May be written 2.0. */
export function expectCount(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0)
    mistaken("must be a whole number, 0 or more");
  return value;
}

type Lower = "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties";
type Upper = "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties";

/** What a number changes. */
export type Limit = (limit: number) => Way[];

export function atLeast(field: Lower): Limit {
  return (limit) =>
    fact((facts) => {
      facts[field] = Math.max(facts[field], limit);
      return hasRoom(facts);
    });
}

export function atMost(field: Upper): Limit {
  return (limit) =>
    fact((facts) => {
      facts[field] = Math.min(facts[field], limit);
      return hasRoom(facts);
    });
}

/** Of counts. Numbers are compared where their intervals are written. */
function hasRoom(facts: Facts): boolean {
  return (
    facts.minLength <= facts.maxLength &&
    facts.minItems <= facts.maxItems &&
    facts.minProperties <= facts.maxProperties
  );
}

/** `min…` and `max…` of a count. Where one fails the other one holds, a step further. */
export function countLimits(type: JsonType, min: Lower, max: Upper): Record<string, Keyword> {
  const keyword = (ways: (limit: number, holds: boolean) => Way[]): Keyword => ({
    types: [type],
    ways: (value, { holds }) => ways(expectCount(value), holds),
  });
  return {
    [min]: keyword((limit, holds) => (holds ? atLeast(min)(limit) : atMost(max)(limit - 1))),
    [max]: keyword((limit, holds) => (holds ? atMost(max)(limit) : atLeast(min)(limit + 1))),
  };
}
