/** What the names in a template stand for, of filters, tests, operators and methods: found once, when it is parsed. */

import { filterNamed } from "./filters.ts";
import { type Node, ownOf } from "./library.ts";
import { methodNamed } from "./methods.ts";
import { testNamed, testOfFilter } from "./tests.ts";
import { scopeMark } from "./tokens.ts";
import type {
  BinaryNode,
  CallNode,
  FilterMeaning,
  FilterNode,
  IfNode,
  MemberNode,
  NamedNode,
  TestNode,
} from "./types.ts";
import { operators } from "./values.ts";

/** Writes it into the nodes. */
export function resolveNames(program: Node): void {
  for (const node of nodesOf(program)) resolve(node);
}

function resolve(node: Node): void {
  switch (node.type) {
    case "FilterExpression":
    case "FilterStatement": {
      const { filter } = node as Node & { filter: FilterNode };
      filter.means = filterMeaning(String(filter.callee?.value ?? filter.value ?? ""));
      return;
    }
    case "TestExpression": {
      const test = node as TestNode;
      test.asks = testNamed(test.test.value);
      return;
    }
    case "If": {
      const { callee, args: values } = (node as IfNode).test as Partial<CallNode>;
      if ((callee as Partial<NamedNode> | undefined)?.value !== scopeMark) return;
      if (values!.some(({ type }) => type !== "KeywordArgumentExpression"))
        throw new SyntaxError("with takes names and their values: {% with a = 1, b = 2 %}");
      Object.assign(node, { type: "With", values });
      return;
    }
    case "BinaryExpression": {
      const binary = node as BinaryNode;
      binary.operate = ownOf(operators, binary.operator.value);
      return;
    }
    case "MemberExpression": {
      const member = node as MemberNode;
      const { computed, property } = member;
      const isComputed = computed && property.type !== "StringLiteral";
      member.method = isComputed ? null : methodNamed(String(property.value));
    }
  }
}

export function filterMeaning(name: string): FilterMeaning {
  return { name, asks: testOfFilter(name), filter: filterNamed(name) };
}

/** Without recursion: a template may be nested as deep as it is long. */
function* nodesOf(program: Node): Generator<Node, void, void> {
  const open: unknown[] = [program];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== "object" || value === null) continue;
    if (value instanceof Map) for (const entry of value) open.push(entry);
    else for (const child of Object.values(value)) open.push(child);
    if (typeof (value as Partial<Node>).type === "string") yield value as Node;
  }
}

const sizes = new WeakMap<Node, number>();

/** In nodes. It is counted once: each rendering asks. */
export function sizeOf(node: Node): number {
  const size = sizes.get(node) ?? [...nodesOf(node)].length;
  sizes.set(node, size);
  return size;
}

/** A callee as the template wrote it, as far as it helps. */
export function spell(node: Node): string {
  if (node.type === "Known") return "…";
  if (node.type !== "MemberExpression")
    return String((node as Partial<NamedNode>).value ?? node.type);
  const { object, property, computed } = node as MemberNode;
  return computed ? `${spell(object)}[…]` : `${spell(object)}.${String(property.value)}`;
}
