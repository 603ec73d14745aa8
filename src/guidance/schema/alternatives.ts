/** What a value may be, one alternative after the other; values inside of it are states. Type-only. */

import type { Literal } from "./facts.ts";
import type { JsonObject } from "./types.ts";

/** A conjunction of subschemas that some value must satisfy. */
export interface State {
  readonly literals: readonly Literal[];
  /** Undefined until it is worked out. */
  alternatives?: Alternative[];
}

export interface ScalarAlternative {
  type: "null" | "boolean" | "number" | "string";
  /** In keywords that the mask engine has. */
  schema: JsonObject;
  /** All values it has, if they are counted. */
  values: readonly unknown[] | null;
}

export interface ArrayAlternative {
  type: "array";
  prefix: State[];
  rest: State;
  min: number;
  max: number;
}

export interface ObjectAlternative {
  type: "object";
  properties: { name: string; state: State; required: boolean }[];
  /** Regular expressions of whole names; no two match the same name. */
  patterns: { regex: string; state: State }[];
  rest: State;
  min: number;
  max: number;
}

export type Alternative = ScalarAlternative | ArrayAlternative | ObjectAlternative;
