/** Nodes of a template's syntax tree, as the library makes them. */

import type { Node, Value } from "./library.ts";

export interface FilterNode extends Node {
  value?: string;
  callee?: NamedNode;
  args?: Node[];
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
