/** Matches without backtracking: time grows with expression times text squared, never exponentially. */

import type { Regex } from "./parse.ts";

/** Longer texts are not matched by masks' helpers: names of properties and constants are short. */
export const maxMatchLength = 1000;

/** @returns whether `regex` matches somewhere in `text` */
export function matches(regex: Regex, text: string): boolean {
  const characters = Array.from(text);
  const everywhere = new Set(Array.from({ length: characters.length + 1 }, (_, index) => index));
  return advance(regex, everywhere, characters).size > 0;
}

type Positions = ReadonlySet<number>;

/** Where a match may end that begins at one of `from`. */
function advance(regex: Regex, from: Positions, text: readonly string[]): Positions {
  if (from.size === 0) return from;
  switch (regex.kind) {
    case "empty":
      return from;
    case "start":
      return from.has(0) ? new Set([0]) : new Set();
    case "end":
      return from.has(text.length) ? new Set([text.length]) : new Set();
    case "set":
      return step(regex, from, text);
    case "concat":
      return regex.parts.reduce((positions, part) => advance(part, positions, text), from);
    case "or": {
      const ends = new Set<number>();
      for (const option of regex.options)
        for (const end of advance(option, from, text)) ends.add(end);
      return ends;
    }
    case "repeat":
      return repeat(regex, from, text);
  }
}

function repeat(
  { body, min, max }: Extract<Regex, { kind: "repeat" }>,
  from: Positions,
  text: readonly string[],
): Positions {
  let positions = from;
  for (let count = 0; count < min; count++) {
    const next = advance(body, positions, text);
    // The same positions again: what follows cannot differ.
    if (sameSet(next, positions)) break;
    positions = next;
  }
  const ends = new Set(positions);
  for (let count = min; count < max; count++) {
    const fresh = new Set<number>();
    for (const end of advance(body, positions, text)) if (!ends.has(end)) fresh.add(end);
    if (fresh.size === 0) break;
    for (const end of fresh) ends.add(end);
    positions = fresh;
  }
  return ends;
}

function sameSet(a: Positions, b: Positions): boolean {
  return a.size === b.size && [...a].every((item) => b.has(item));
}

function step(
  set: Extract<Regex, { kind: "set" }>,
  from: Positions,
  text: readonly string[],
): Positions {
  const ends = new Set<number>();
  for (const at of from) {
    const character = text[at];
    if (character !== undefined && isIn(set, character)) ends.add(at + 1);
  }
  return ends;
}

function isIn(
  { ranges, properties, negated }: Extract<Regex, { kind: "set" }>,
  character: string,
): boolean {
  const code = character.codePointAt(0) ?? 0;
  const isListed =
    ranges.some(([first, last]) => code >= first && code <= last) ||
    properties.some((name) => hasProperty(name, character));
  return isListed !== negated;
}

function hasProperty(name: string, character: string): boolean {
  try {
    return new RegExp(`^\\p{${name}}$`, "u").test(character);
  } catch {
    return false;
  }
}
