/** One JSON Schema keyword: what it says of a value of one type, and what its failure says. */

import type { SchemaDocument, SchemaNode } from "./document.ts";
import type { Facts, Literal } from "./facts.ts";
import type { JsonObject, JsonType } from "./types.ts";

/** A keyword's meaning is "one of these ways": subschemas that hold or do not, and facts. */
export interface Way {
  literals?: Literal[];
  /** @returns false when nothing is left */
  change?: (facts: Facts) => boolean;
}

/** No constraint. */
export const always: Way[] = [{}];
/** Cannot be. */
export const never: Way[] = [];

/** No mask can hold it; `reason` completes "The keyword … ". */
export class Unsupported extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}

export interface KeywordContext {
  readonly document: SchemaDocument;
  readonly node: SchemaNode;
  readonly schema: JsonObject;
  readonly type: JsonType;
  readonly scopes: readonly number[];
  /** A subschema of this node. */
  literal(holds: boolean, ...keys: (string | number)[]): Literal;
  /** Could a value satisfy all of these? True also where it cannot be told. */
  mayHold(literals: readonly Literal[]): boolean;
}

export interface Keyword {
  /** Types it speaks of; undefined: all. */
  types?: readonly JsonType[];
  holds(value: unknown, context: KeywordContext): Way[];
  fails(value: unknown, context: KeywordContext): Way[];
}
