/** What the names of filters and tests in a template stand for: found once, when it is parsed. */

import { ownFilters, plainFilters } from "./filters.ts";
import { type Node, ownOf } from "./library.ts";
import { testNamed, testOfFilter } from "./tests.ts";
import type { FilterMeaning, FilterNode, NamedNode, TestNode } from "./types.ts";

/** Writes it into the nodes. */
export function resolveNames(program: Node): void {
  for (const node of nodesOf(program)) {
    if (node.type === "TestExpression") {
      const test = node as TestNode;
      test.asks = testNamed(test.test.value);
    } else if (node.type === "FilterExpression" || node.type === "FilterStatement") {
      const { filter } = node as Node & { filter: FilterNode };
      filter.means = meaningOf(filter);
    }
  }
}

function meaningOf({ value, callee, args = [] }: Omit<FilterNode, "means">): FilterMeaning {
  const name = String(callee?.value ?? value ?? "");
  const [first] = args as NamedNode[];
  return {
    name,
    asks: testOfFilter(name),
    own: ownOf(ownFilters, name),
    plain: callee === undefined ? ownOf(plainFilters, name) : undefined,
    each: name === "map" && first?.type === "StringLiteral" ? filterNamed(first.value) : undefined,
  };
}

function filterNamed(value: string): FilterNode {
  const filter = { type: "Identifier", value };
  return { ...filter, means: meaningOf(filter) };
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
