/**
 * Looking at one character, as expressions without it: what stands beside is held to it. `(?!-)[a-z-]{1,63}` is
 * `[a-z][a-z-]{0,62}`. So counts stay counts.
 */

import { type CharacterSet, invert, merge, rangesOf } from "./sets.ts";
import type { Regex } from "./tree.ts";

/** The character that is looked at. */
interface Wanted {
  set: CharacterSet;
  /** There may be none. */
  orNone: boolean;
}

/** How many parts may still be looked at or copied for one pattern: each option has the rest of its row again. */
export interface NarrowingRoom {
  left: number;
}

export const narrowingRoom = 5000;

/** @param parts in a row. @returns those with the looks that could not be written so */
export function withNarrowSets(parts: readonly Regex[], room: NarrowingRoom): Regex[] {
  const row: Regex[] = [];
  for (const [index, part] of parts.entries()) {
    const wanted = wantedBy(part);
    if (wanted === null || part.kind !== "look") row.push(part);
    else if (!part.ahead)
      row.splice(0, row.length, ...(ending(row, wanted, room) ?? [...row, part]));
    else {
      const rest = withNarrowSets(parts.slice(index + 1), room);
      const narrowed = rest.length === 0 ? null : beginning(rowOf(rest), wanted, room);
      return narrowed === null ? [...row, part, ...rest] : [...row, ...partsOf(narrowed)];
    }
  }
  return row;
}

/** A row for each option of what stands at word boundaries. @returns null where one of them could not be written so */
export function withoutBoundaries(
  parts: readonly Regex[],
  isBoundary: (part: Regex) => boolean,
  room: NarrowingRoom,
): Regex[] | null {
  if (!parts.some(isBoundary)) return null;
  let rows: readonly Regex[][] = [[]];
  for (const part of parts) {
    const ways = isBoundary(part) && part.kind === "or" ? part.options : [part];
    rows = ways.flatMap((way) => rows.map((row) => [...row, ...partsOf(way)]));
    if (!hasRoom(room, rows.length)) return null;
  }
  const narrow = rows.map((row) => withNarrowSets(row, room)).filter((row) => !row.some(isNothing));
  if (narrow.some((row) => row.some((part) => part.kind === "look"))) return null;
  const [first = [nothing], ...others] = narrow;
  if (others.length === 0) return first;
  let shared = 0;
  while (shared < first.length && others.every((row) => row[shared] === first[shared])) shared += 1;
  const ends = narrow.map((row) => rowOf(row.slice(shared)));
  return [...first.slice(0, shared), { kind: "or", options: ends }];
}

/** Where there must be a character; none is left to `beginning`. */
function wantedBy(regex: Regex): Wanted | null {
  if (regex.kind !== "look" || regex.body.kind !== "set" || regex.body.properties.length > 0)
    return null;
  const { body, negated } = regex;
  return { set: negated ? { ...body, negated: !body.negated } : body, orNone: negated };
}

/** What begins with such a character. @returns null where it cannot be told here */
function beginning(regex: Regex, wanted: Wanted, room: NarrowingRoom): Regex | null {
  if (!hasRoom(room, regex.kind === "concat" ? regex.parts.length : 1)) return null;
  switch (regex.kind) {
    case "set":
      return both(regex, wanted.set);
    case "end":
      return wanted.orNone ? regex : nothing;
    case "or":
      return options(regex.options.map((option) => beginning(option, wanted, room)));
    case "repeat":
      if (regex.min === 0) return null;
      return inRow(beginning(regex.body, wanted, room), [lessOne(regex)]);
    case "concat": {
      const [head, ...rest] = regex.parts;
      if (head!.kind !== "repeat" || head!.min > 0)
        return inRow(beginning(head!, wanted, room), rest);
      const some = inRow(beginning({ ...head!, min: 1 }, wanted, room), rest);
      return options([some, rest.length === 0 ? null : beginning(rowOf(rest), wanted, room)]);
    }
    default:
      return null;
  }
}

/** What ends with such a character: all of them, in a row. @returns null where it cannot be told here */
function ending(
  parts: readonly Regex[],
  wanted: Wanted,
  room: NarrowingRoom,
): readonly Regex[] | null {
  const last = parts.at(-1);
  if (last === undefined || !hasRoom(room, parts.length)) return null;
  const before = parts.slice(0, -1);
  switch (last.kind) {
    case "set": {
      const narrow = both(last, wanted.set);
      return narrow && [...before, narrow];
    }
    case "start":
      return wanted.orNone ? [...parts] : [nothing];
    case "concat":
      return ending([...before, ...last.parts], wanted, room);
    case "or": {
      const ways = options(
        last.options.map((option) => {
          const ended = ending([option], wanted, room);
          return ended && rowOf(ended);
        }),
      );
      return ways && [...before, ways];
    }
    case "repeat": {
      const ended = ending([last.body], wanted, room);
      if (ended === null) return null;
      if (last.min > 0) return [...before, lessOne(last), ...ended];
      const none = ending(before, wanted, room);
      const some = [...before, lessOne({ ...last, min: 1 }), ...ended];
      return none && partsOf(options([rowOf(none), rowOf(some)])!);
    }
    default:
      return null;
  }
}

function hasRoom(room: NarrowingRoom, parts: number): boolean {
  room.left -= parts;
  return room.left >= 0;
}

function lessOne(repeat: Extract<Regex, { kind: "repeat" }>): Regex {
  return { ...repeat, min: repeat.min - 1, max: repeat.max - 1 };
}

function inRow(head: Regex | null, rest: readonly Regex[]): Regex | null {
  return head && rowOf([head, ...rest]);
}

function rowOf(parts: readonly Regex[]): Regex {
  if (parts.some(isNothing)) return nothing;
  return parts.length === 1 ? parts[0]! : { kind: "concat", parts };
}

function partsOf(regex: Regex): readonly Regex[] {
  return regex.kind === "concat" ? regex.parts : [regex];
}

const nothing: CharacterSet = { kind: "set", ranges: [], properties: [], negated: false };

function isNothing(regex: Regex): boolean {
  if (regex.kind !== "set" || regex.negated) return false;
  return regex.ranges.length + regex.properties.length === 0;
}

function options(all: readonly (Regex | null)[]): Regex | null {
  if (!all.every((each) => each !== null)) return null;
  const some = all.filter((each) => !isNothing(each));
  return some.length > 1 ? { kind: "or", options: some } : (some[0] ?? nothing);
}

function both(one: CharacterSet, other: CharacterSet): CharacterSet | null {
  if (one.properties.length > 0 || other.properties.length > 0) return null;
  const outside = [...invert(rangesOf(one)), ...invert(rangesOf(other))];
  return { kind: "set", ranges: invert(merge(outside)), properties: [], negated: false };
}

/**
 * `^.*[A-Z]` as `^[^A-Z]*[A-Z]`, up to the first of them: of the other form the mask engine follows each, and beside other
 * patterns these are too many.
 */
export function upToFirst(regex: Regex): Regex {
  if (regex.kind === "set") return foundAfter(null, regex) ?? regex;
  if (regex.kind !== "concat" || regex.parts.length !== 3) return regex;
  const [start, any, set] = regex.parts;
  const isAny = any!.kind === "repeat" && any!.min === 0 && any!.max === Infinity;
  if (start!.kind !== "start" || !isAny || any!.body.kind !== "set" || set!.kind !== "set")
    return regex;
  return foundAfter(any!.body, set!) ?? regex;
}

/** It is `upToFirst`'s, or says of all characters what they are: its automaton has two states. */
export function isSimple(regex: Regex): boolean {
  if (regex.kind !== "concat" || regex.parts.length !== 3) return false;
  const [start, any, last] = regex.parts;
  if (start!.kind !== "start" || any!.kind !== "repeat" || any!.body.kind !== "set") return false;
  if (any!.min > 0 || any!.max < Infinity) return false;
  return (
    last!.kind === "end" || (last!.kind === "set" && both(any!.body, last!)?.ranges.length === 0)
  );
}

function foundAfter(any: CharacterSet | null, set: CharacterSet): Regex | null {
  const other: CharacterSet = { ...set, negated: !set.negated };
  const body = any === null ? other : both(any, other);
  // Beside a length the mask engine looks for such a text among those of ASCII first, and not for long.
  if (body === null || rangesOf(set).every(([from]) => from > 127)) return null;
  const before: Regex = { kind: "repeat", body, min: 0, max: Infinity };
  return { kind: "concat", parts: [{ kind: "start" }, before, set] };
}
