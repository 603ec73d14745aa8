/** Can two expressions match the same text? A search over pairs of positions, bounded. */

import type { Range, Regex } from "./parse.ts";

const maxStates = 300;
const maxPairs = 20_000;
const LAST = 0x10ffff;

interface Edge {
  /** Null: any character. */
  ranges: readonly Range[];
  to: number;
}

interface Automaton {
  start: number;
  end: number;
  edges: Edge[][];
  empty: number[][];
}

/** @returns false also where it cannot be told */
export function areDisjoint(a: Regex, b: Regex): boolean {
  const first = automatonOf(a);
  const second = automatonOf(b);
  if (first === null || second === null) return false;
  const seen = new Set<number>();
  const width = second.edges.length;
  const open: [number, number][] = [[first.start, second.start]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [x, y] = pair;
    const key = x * width + y;
    if (seen.has(key)) continue;
    seen.add(key);
    if (seen.size > maxPairs || (x === first.end && y === second.end)) return false;
    for (const next of first.empty[x] ?? []) open.push([next, y]);
    for (const next of second.empty[y] ?? []) open.push([x, next]);
    for (const edge of first.edges[x] ?? [])
      for (const other of second.edges[y] ?? [])
        if (overlap(edge.ranges, other.ranges)) open.push([edge.to, other.to]);
  }
  return true;
}

function overlap(a: readonly Range[], b: readonly Range[]): boolean {
  return a.some(([first, last]) => b.some(([from, to]) => first <= to && from <= last));
}

const everything: readonly Range[] = [[0, LAST]];

/** Of all texts in which the expression matches somewhere. Null: too large, or not to be told. */
function automatonOf(regex: Regex): Automaton | null {
  const automaton: Automaton = { start: 0, end: 1, edges: [[], []], empty: [[], []] };
  const add = (): number => {
    automaton.edges.push([]);
    automaton.empty.push([]);
    return automaton.edges.length - 1;
  };
  const build = (part: Regex, from: number, to: number, left: boolean, right: boolean): boolean => {
    if (automaton.edges.length > maxStates) return false;
    switch (part.kind) {
      case "empty":
        automaton.empty[from]!.push(to);
        return true;
      case "start":
        // Only at the very beginning, which is where `left` says we are.
        if (left) automaton.empty[from]!.push(to);
        return left;
      case "end":
        if (right) automaton.empty[from]!.push(to);
        return right;
      case "set": {
        if (part.properties.length > 0) automaton.edges[from]!.push({ ranges: everything, to });
        else
          automaton.edges[from]!.push({
            ranges: part.negated ? invert(part.ranges) : part.ranges,
            to,
          });
        return true;
      }
      case "or":
        return part.options.every((option) => build(option, from, to, left, right));
      case "concat": {
        let at = from;
        return part.parts.every((each, index) => {
          const isLast = index === part.parts.length - 1;
          const next = isLast ? to : add();
          const done = build(each, at, next, left && index === 0, right && isLast);
          at = next;
          return done;
        });
      }
      case "repeat": {
        let at = from;
        for (let count = 0; count < part.min; count++) {
          const next = add();
          if (!build(part.body, at, next, false, false)) return false;
          at = next;
        }
        if (part.max === Infinity) {
          const loop = add();
          automaton.empty[at]!.push(loop);
          automaton.empty[loop]!.push(to);
          return build(part.body, loop, loop, false, false);
        }
        for (let count = part.min; count < part.max; count++) {
          automaton.empty[at]!.push(to);
          const next = add();
          if (!build(part.body, at, next, false, false)) return false;
          at = next;
        }
        automaton.empty[at]!.push(to);
        return true;
      }
    }
  };
  return build(bordered(regex), 0, 1, true, true) ? automaton : null;
}

/** Anything may stand before and after, where no anchor forbids it. */
function bordered(regex: Regex): Regex {
  const parts = regex.kind === "concat" ? [...regex.parts] : [regex];
  if (regex.kind === "or") return { kind: "or", options: regex.options.map(bordered) };
  const anything: Regex = {
    kind: "repeat",
    body: { kind: "set", ranges: everything, properties: [], negated: false },
    min: 0,
    max: Infinity,
  };
  if (parts[0]?.kind !== "start") parts.unshift(anything);
  if (parts.at(-1)?.kind !== "end") parts.push(anything);
  return { kind: "concat", parts };
}

function invert(ranges: readonly Range[]): Range[] {
  const inverted: Range[] = [];
  let next = 0;
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (first > next) inverted.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  if (next <= LAST) inverted.push([next, LAST]);
  return inverted;
}
