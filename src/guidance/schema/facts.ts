/** What is known of a value of one JSON type: the conjunction of all keywords that speak of it. */

import type { SchemaNode } from "./document.ts";
import type { Regex } from "./regex.ts";
import type { JsonType } from "./types.ts";

/** A subschema that holds, or one that does not. */
export interface Literal {
  node: SchemaNode;
  holds: boolean;
  /** Collectors of what is evaluated, for `unevaluated…`. */
  scopes: readonly number[];
}

export interface PatternFact {
  source: string;
  regex: Regex;
  node: SchemaNode;
}

/** Applies to keys that are neither named nor matched. */
export interface RestFact {
  names: ReadonlySet<string>;
  patterns: readonly PatternFact[];
  literal: Literal;
}

export interface ItemsFact {
  from: number;
  literal: Literal;
}

export interface ContainsFact {
  from: number;
  min: number;
  max: number;
  literal: Literal;
  node: SchemaNode;
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
  contains: boolean;
}

/** One value that may be; only scalars. */
export type Scalar = string | number | boolean | null;

export class Facts {
  readonly type: JsonType;
  /** If given, the only values. */
  values: Scalar[] | null = null;
  excluded: Scalar[] = [];
  // Numbers
  integer: boolean | null = null;
  minimum = -Infinity;
  maximum = Infinity;
  exclusiveMinimum = -Infinity;
  exclusiveMaximum = Infinity;
  multiples: number[] = [];
  // Strings
  minLength = 0;
  maxLength = Infinity;
  patterns: PatternFact[] = [];
  formats: string[] = [];
  // Arrays
  minItems = 0;
  maxItems = Infinity;
  prefix: { index: number; literal: Literal }[] = [];
  items: ItemsFact[] = [];
  contains: ContainsFact[] = [];
  unique: SchemaNode | null = null;
  // Objects
  properties = new Map<string, Literal[]>();
  /** Some schema lists properties, maybe none. */
  namesProperties = false;
  patternProperties: { pattern: PatternFact; literal: Literal }[] = [];
  rest: RestFact[] = [];
  names: Literal[] = [];
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
    copy.required = new Set(this.required);
    copy.scopes = this.scopes.map((scope) => ({
      ...scope,
      names: new Set(scope.names),
      patterns: [...scope.patterns],
    }));
    return copy;
  }

  /** A size is left, as far as limits say it. */
  hasRoom(): boolean {
    return (
      this.minLength <= this.maxLength &&
      this.minItems <= this.maxItems &&
      this.minProperties <= this.maxProperties
    );
  }

  addProperty(name: string, literal: Literal): void {
    const list = this.properties.get(name);
    if (list === undefined) this.properties.set(name, [literal]);
    else list.push(literal);
  }

  /** @returns false when no value is left */
  restrict(values: readonly Scalar[]): boolean {
    const allowed = new Set(values);
    this.values = [...new Set(this.values ?? values)].filter((value) => allowed.has(value));
    return this.values.length > 0;
  }
}
