/** Nodes of a template's syntax tree, as the library makes them, and what the names in them stand for. */

import type { ArgumentOf, RenderBudget } from "./budget.ts";
import type { Call, Node, Value } from "./library.ts";

export interface FilterNode extends Node {
  /** Its name, without arguments. */
  value?: unknown;
  /** Of arguments. */
  callee?: NamedNode;
  args?: Node[];
  /** What its name stands for, found when the template is parsed, as what the other nodes name. */
  means: FilterMeaning;
}

export interface FilterMeaning {
  name: string;
  /** It is a test, or the contrary of one. */
  asks: { test: Test; negate: boolean } | undefined;
  filter: Filter;
}

export interface NamedNode extends Node {
  value: string;
}

export interface BinaryNode extends Node {
  operator: { value: string; isChained?: boolean };
  left: Node;
  right: Node;
  /** Undefined: `and` or `or`. */
  operate: Operator | undefined;
}

export interface MemberNode extends Node {
  object: Node;
  property: Node & { value?: unknown };
  computed: boolean;
  /** Undefined: no method has the name. Null: what is named is computed. */
  method: MethodOf | undefined | null;
}

export interface CallNode extends Node {
  callee: Node;
  args: Node[];
}

export interface TestNode extends Node {
  operand: Node;
  negate: boolean;
  test: NamedNode;
  asks: Test;
}

export interface IfNode extends Node {
  test: Node;
  body: Node[];
  alternate: Node[];
}

export interface WithNode extends Node {
  /** By name. */
  values: (Node & { key: NamedNode; value: Node })[];
  body: Node[];
}

/** A node that was evaluated already. */
export interface KnownNode extends Node {
  known: Value;
}

/** A name, or names for the parts of a value. */
export interface TargetNode extends Node {
  value: string | TargetNode[];
}

export interface ForNode extends Node {
  iterable: Node & { lhs?: Node; test?: Node };
  loopvar: TargetNode;
  body: Node[];
  defaultBlock: Node[];
}

export interface FilterCall {
  operand: Value;
  args: readonly Value[];
  named: ReadonlyMap<string, Value>;
  argument: ArgumentOf;
  /** Whether the argument is given and true. */
  isSet(place: number, name: string): boolean;
  /** What a test that is named as the template runs says of values. */
  test(name: string): (value: Value, args: readonly Value[]) => boolean;
  /** Another filter that is named so, for `map`. */
  filter(name: string): (operand: Value, args: Pick<FilterCall, "args" | "named">) => Value;
  /** For work in proportion to what an argument says, or to values found within the operand. */
  budget: RenderBudget;
}

/** @throws TypeError it cannot be applied to this value */
export type Filter = (call: FilterCall) => Value;

/** @throws TypeError it cannot be asked of this value */
export type Test = (value: Value, args: readonly Value[]) => boolean;

/** @throws TypeError these values have no such operator; TemplateTooCostly */
export type Operator = (left: Value, right: Value, budget: RenderBudget) => Value;

export type BoundMethod = Value & { value: Call };

/** A value's method, bound to it. Undefined where the library's own answer stands. */
export type MethodOf = (object: Value) => BoundMethod | undefined;
