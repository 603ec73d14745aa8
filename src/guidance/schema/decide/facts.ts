/** What is known of a value of one JSON type: the conjunction of all keywords that speak of it. */

import type { Regex } from "../regex/parse.ts";
import type { JsonType, Literal, Scalar, SchemaNode } from "../types.ts";

export interface PatternFact extends Place {
  source: string;
  regex: Regex;
  /** Of the expression that no text may match, where it is the complement of one. */
  excludes?: Regex;
}

/** Applies to keys that are neither named nor matched. */
export interface RestFact {
  names: ReadonlySet<string>;
  patterns: readonly PatternFact[];
  literal: Literal;
}

export interface ContainsFact {
  from: number;
  min: number;
  max: number;
  literal: Literal;
  path: string;
}

/** One property at least is such a one. */
export interface NeededProperty extends Place {
  /** By its name. */
  isOne(name: string): boolean;
  /** What its name must be; null: anything. */
  name: Literal | null;
  /** What its value must be; null: anything. */
  literal: Literal | null;
  /** Each name that no schema lists is such a one. */
  isAnyOther: boolean;
}

/** What the branches below one `unevaluated…` keyword have evaluated. */
export interface Scope {
  node: SchemaNode;
  properties: Literal | null;
  items: Literal | null;
  names: Set<string>;
  patterns: PatternFact[];
  allProperties: boolean;
  itemCount: number;
  allItems: boolean;
  /** What matches one of them is evaluated. */
  contains: Literal[];
}

/** Where something was said that no mask may be able to hold. */
export interface Place {
  path: string;
  keyword: string;
}

export interface Excluded extends Place {
  value: Scalar;
}

export class Facts {
  readonly type: JsonType;
  /** If given, the only values. */
  values: Scalar[] | null = null;
  excluded: Excluded[] = [];
  // Numbers
  integer: boolean | null = null;
  minimum = -Infinity;
  maximum = Infinity;
  exclusiveMinimum = -Infinity;
  exclusiveMaximum = Infinity;
  multiples: number[] = [];
  /** The limit that no mask can hold. */
  far: Place | null = null;
  /** What says that no integer is meant. */
  notInteger: Place | null = null;
  // Strings
  minLength = 0;
  maxLength = Infinity;
  patterns: PatternFact[] = [];
  formats: { name: string; path: string }[] = [];
  // Arrays
  minItems = 0;
  maxItems = Infinity;
  prefix: { index: number; literal: Literal }[] = [];
  items: { from: number; literal: Literal }[] = [];
  contains: ContainsFact[] = [];
  /** Path of the schema that says `uniqueItems`. */
  unique: string | null = null;
  // Objects
  properties = new Map<string, Literal[]>();
  /** Some schema lists properties, maybe none. */
  namesProperties = false;
  patternProperties: { pattern: PatternFact; literal: Literal }[] = [];
  rest: RestFact[] = [];
  names: Literal[] = [];
  needed: NeededProperty[] = [];
  required = new Set<string>();
  minProperties = 0;
  maxProperties = Infinity;
  scopes: Scope[] = [];

  constructor(type: JsonType) {
    this.type = type;
  }

  clone(): Facts {
    const copy = Object.assign(new Facts(this.type), this);
    copy.values = this.values === null ? null : [...this.values];
    copy.excluded = [...this.excluded];
    copy.multiples = [...this.multiples];
    copy.patterns = [...this.patterns];
    copy.formats = [...this.formats];
    copy.prefix = [...this.prefix];
    copy.items = [...this.items];
    copy.contains = [...this.contains];
    copy.properties = new Map([...this.properties].map(([name, list]) => [name, [...list]]));
    copy.patternProperties = [...this.patternProperties];
    copy.rest = [...this.rest];
    copy.names = [...this.names];
    copy.needed = [...this.needed];
    copy.required = new Set(this.required);
    copy.scopes = this.scopes.map((scope) => ({
      ...scope,
      names: new Set(scope.names),
      patterns: [...scope.patterns],
      contains: [...scope.contains],
    }));
    return copy;
  }

  /** How much there is to copy and to write. */
  size(): number {
    const lists = [
      this.values,
      this.excluded,
      this.prefix,
      this.items,
      this.contains,
      this.patterns,
    ];
    const objects = [this.properties, this.required, this.patternProperties, this.rest, this.names];
    return (
      1 +
      lists.reduce((sum, list) => sum + (list?.length ?? 0), 0) +
      objects.reduce((sum, each) => sum + ("size" in each ? each.size : each.length), 0)
    );
  }

  addProperty(name: string, literal: Literal): void {
    const list = this.properties.get(name);
    if (list === undefined) this.properties.set(name, [literal]);
    else list.push(literal);
  }

  scopesAt(ids: readonly number[]): Scope[] {
    return ids.map((id) => this.scopes[id]!);
  }

  /** @returns false when no value is left */
  restrict(values: readonly Scalar[]): boolean {
    const allowed = new Set(values);
    this.values = [...new Set(this.values ?? values)].filter((value) => allowed.has(value));
    return this.values.length > 0;
  }
}
