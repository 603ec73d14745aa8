/** Nodes of a template's syntax tree, as the library makes them. */

import type { Filter, PlainFilter } from "./filters.ts";
import type { Node, Value } from "./library.ts";
import type { Test } from "./tests.ts";

export interface FilterNode extends Node {
  /** Its name, without arguments. */
  value?: unknown;
  /** Of arguments. */
  callee?: NamedNode;
  args?: Node[];
  means: FilterMeaning;
}

/** What a filter's name stands for, found when the template is parsed. If nothing is said: the library's own. */
export interface FilterMeaning {
  name: string;
  /** It is a test, or the contrary of one. */
  asks?: { test: Test; negate: boolean } | undefined;
  own?: Filter | undefined;
  plain?: PlainFilter | undefined;
  /** Of `map`: the filter for each item. */
  each?: FilterNode | undefined;
}

export interface NamedNode extends Node {
  value: string;
}

export interface BinaryNode extends Node {
  operator: { value: string };
  left: Node;
  right: Node;
}

export interface MemberNode extends Node {
  object: Node;
  property: Node & { value?: unknown };
  computed: boolean;
}

export interface CallNode extends Node {
  callee: Node;
  args: Node[];
}

export interface TestNode extends Node {
  operand: Node;
  negate: boolean;
  test: NamedNode;
  /** What the name stands for, found when the template is parsed. */
  asks: Test;
}

export interface IfNode extends Node {
  test: Node;
  body: Node[];
  alternate: Node[];
}

/** A node that was evaluated already. */
export interface KnownNode extends Node {
  known: Value;
}

export interface ForNode extends Node {
  iterable: Node & { lhs?: Node; test?: Node };
  loopvar: Node & { value: string | (Node & { value: string })[] };
  body: Node[];
  defaultBlock: Node[];
}
