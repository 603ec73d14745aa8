/** Sets of characters. */

export interface CharacterSet {
  kind: "set";
  ranges: readonly Range[];
  /** Unicode properties: `L`, `Script=Greek`. */
  properties: readonly string[];
  negated: boolean;
}

/** Code points, both ends included. */
export type Range = readonly [first: number, last: number];

const lastCodePoint = 0x10ffff;

/** In order, those that touch as one. */
export function merge(ranges: readonly Range[]): Range[] {
  const merged: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const previous = merged.at(-1);
    if (previous !== undefined && first <= previous[1] + 1)
      previous[1] = Math.max(previous[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** All other characters. */
export function invert(ranges: readonly Range[]): Range[] {
  const inverted: Range[] = [];
  let next = 0;
  for (const [first, last] of merge(ranges)) {
    if (first > next) inverted.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= lastCodePoint) inverted.push([next, lastCodePoint]);
  return inverted;
}

const everything = invert([]);
/** Looked up again and again while an automaton is walked. */
const inverted = new WeakMap<CharacterSet, readonly Range[]>();

/** What a property has is not looked up: it may be anything. */
export function rangesOf(set: CharacterSet): readonly Range[] {
  if (set.properties.length > 0) return everything;
  if (!set.negated) return set.ranges;
  let ranges = inverted.get(set);
  if (ranges === undefined) {
    ranges = invert(set.ranges);
    inverted.set(set, ranges);
  }
  return ranges;
}
