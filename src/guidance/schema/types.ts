/** What the three passes hand to each other. Type-only. */

export type JsonObject = { [key: string]: unknown };

export type Scalar = string | number | boolean | null;

export type JsonType = "null" | "boolean" | "number" | "string" | "array" | "object";

export type Draft = "draft-07" | "draft-2020-12";

/** A keyword that no mask can enforce. In strict mode an error, in lenient mode what is validated afterwards. */
export interface SchemaIssue {
  /** JSON pointer of the subschema as a URI fragment: `#/properties/city`. */
  path: string;
  keyword: string;
  /** Completes "The keyword … ". */
  reason: string;
  /** No draft allows the keyword's value. */
  isMistake?: true;
}

/** From the first pass: a subschema. */
export interface SchemaNode {
  readonly id: number;
  readonly schema: boolean | JsonObject;
  /** `#/properties/a`: the first place that says it; of a node that is not in the document, the path of what it was made from. */
  readonly path: string;
  /** URI that references in it are relative to. */
  readonly base: string;
  /** Which resources it was reached through, as far as dynamic references tell them apart. */
  readonly scope: string;
  /** It is not in the document. */
  readonly isMade: boolean;
}

/** A subschema that holds, or one that does not. */
export interface Literal {
  node: SchemaNode;
  holds: boolean;
  /** Collectors of what is evaluated, for `unevaluated…`. */
  scopes: readonly number[];
}

/** From the second pass: a conjunction of subschemas that some value must satisfy. */
export interface State {
  readonly literals: readonly Literal[];
  /** Undefined until they are worked out. */
  alternatives?: Alternative[];
}

/** What a value may be; values inside of it are states. */
export type Alternative = ScalarAlternative | ArrayAlternative | ObjectAlternative;

export interface ScalarAlternative {
  type: "null" | "boolean" | "number" | "string";
  /** In keywords that the mask engine has. */
  schema: JsonObject;
  /** All values it has, if they are counted. */
  values: readonly Scalar[] | null;
}

/** The only item of another array beside one whose items must differ: no schema allows it, and no mask lets it through. */
export type Marker = "number" | "string";

export interface ArrayAlternative {
  type: "array";
  prefix: State[];
  rest: State;
  min: number;
  max: number;
  /** The items are these, each once at most. */
  distinct?: readonly Scalar[];
  /** Its items must all differ, and are remembered: the path of the schema that says so. */
  unique?: string;
  /** It ends when all its items were there. */
  runsOut?: true;
  /** How the masks' engine knows it, where its first item does not tell. */
  marker?: Marker;
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
