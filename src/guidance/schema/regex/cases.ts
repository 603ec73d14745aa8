/** Characters in upper and lower case, for `(?i)`. */

import type { Range } from "./sets.ts";
import { RegexError } from "./tree.ts";

/** Which are the same letters as `s` and `k`: the long s and the sign of kelvin. */
export const thirdForms: { letter: Range; range: Range }[] = [
  { letter: [0x73, 0x73], range: [0x17f, 0x17f] },
  { letter: [0x6b, 0x6b], range: [0x212a, 0x212a] },
];

const hasCase = /[\p{Changes_When_Casemapped}\p{Changes_When_Casefolded}]/u;
/** Characters of one range that are looked at: the ideographs of Chinese are fewer. */
const mostLookedAt = 30_000;

function isCaseless([first, last]: Range): boolean {
  if (last - first > mostLookedAt) return false;
  for (let code = first; code <= last; code++)
    if (hasCase.test(String.fromCodePoint(code))) return false;
  return true;
}

/**
 * @throws RegexError beyond ASCII, but for a letter that has one other form and for what has no case: there is no table of the
 * others here
 */
export function inBothCases([first, last]: Range, negated: boolean): Range[] {
  if (last > 127) {
    if (isCaseless([first, last])) return [[first, last]];
    const character = String.fromCodePoint(first);
    const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
    const isPair = lower.toUpperCase() === upper && upper.toLowerCase() === lower;
    const isOne = isPair && (character === lower || character === upper);
    if (negated || first !== last || !isOne) throw beyondAscii();
    return [lower, upper].map((text): Range => [text.codePointAt(0)!, text.codePointAt(0)!]);
  }
  const part = (from: number, to: number, shift: number): Range[] => {
    const low = Math.max(first, from);
    const high = Math.min(last, to);
    return low <= high ? [[low + shift, high + shift]] : [];
  };
  const both: Range[] = [[first, last], ...part(65, 90, 32), ...part(97, 122, -32)];
  if (!negated) return both;
  const third = thirdForms.filter(({ letter: [code] }) =>
    both.some(([from, to]) => code >= from && code <= to),
  );
  return [...both, ...third.map(({ range }) => range)];
}

export function beyondAscii(): RegexError {
  return new RegexError("ignores the case of characters beyond ASCII");
}
