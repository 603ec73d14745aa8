/**
 * Looking at one character, as expressions without it: what stands beside is held to it. `(?!-)[a-z-]{1,63}` is
 * `[a-z][a-z-]{0,62}`. So counts stay counts.
 */

import { type CharacterSet, invert, merge, rangesOf } from "./sets.ts";
import type { Regex } from "./tree.ts";

interface Pending {
  set: CharacterSet;
  look: Regex;
}

/** How many parts may still be looked at or copied for one pattern: each option has the rest of its row again. */
export interface NarrowingRoom {
  left: number;
}

export const narrowingRoom = 5000;

/** @param parts in a row. @returns those with the looks that could not be written so */
export function withNarrowSets(parts: readonly Regex[], room: NarrowingRoom): Regex[] {
  const row: Regex[] = [];
  let pending = null as Pending | null;
  for (const part of parts) {
    const ahead: Pending | null = pending;
    pending = null;
    const narrowed: Regex | null = ahead && beginning(part, ahead.set, room);
    if (ahead !== null && narrowed === null) row.push(ahead.look);
    const next: Regex = narrowed ?? part;
    const set = setOf(next);
    if (set === null || next.kind !== "look") row.push(next);
    else if (next.ahead) pending = { set, look: next };
    else row.splice(0, row.length, ...(ending(row, set, room) ?? [...row, next]));
  }
  return pending === null ? row : [...row, pending.look];
}

/** What the character must be that is looked at, where there must be one. */
function setOf(regex: Regex): CharacterSet | null {
  if (regex.kind !== "look" || regex.body.kind !== "set" || regex.body.properties.length > 0)
    return null;
  return regex.negated ? { ...regex.body, negated: !regex.body.negated } : regex.body;
}

/** What begins with a character of the set. @returns null where it cannot be told here */
function beginning(regex: Regex, set: CharacterSet, room: NarrowingRoom): Regex | null {
  if (!hasRoom(room, regex.kind === "concat" ? regex.parts.length : 1)) return null;
  switch (regex.kind) {
    case "set":
      return both(regex, set);
    case "or":
      return options(regex.options.map((option) => beginning(option, set, room)));
    case "repeat":
      if (regex.min === 0) return null;
      return inRow(beginning(regex.body, set, room), [lessOne(regex)]);
    case "concat": {
      const [head, ...rest] = regex.parts;
      if (head!.kind !== "repeat" || head!.min > 0) return inRow(beginning(head!, set, room), rest);
      const some = inRow(beginning({ ...head!, min: 1 }, set, room), rest);
      return options([some, rest.length === 0 ? null : beginning(rowOf(rest), set, room)]);
    }
    default:
      return null;
  }
}

/** What ends with a character of the set: all of them, in a row. @returns null where it cannot be told here */
function ending(parts: readonly Regex[], set: CharacterSet, room: NarrowingRoom): Regex[] | null {
  const last = parts.at(-1);
  if (last === undefined || !hasRoom(room, parts.length)) return null;
  const before = parts.slice(0, -1);
  switch (last.kind) {
    case "set": {
      const narrow = both(last, set);
      return narrow && [...before, narrow];
    }
    case "concat":
      return ending([...before, ...last.parts], set, room);
    case "or": {
      const ways = options(
        last.options.map((option) => {
          const ended = ending([option], set, room);
          return ended && rowOf(ended);
        }),
      );
      return ways && [...before, ways];
    }
    case "repeat": {
      const ended = ending([last.body], set, room);
      if (ended === null) return null;
      if (last.min > 0) return [...before, lessOne(last), ...ended];
      const none = ending(before, set, room);
      const some = [...before, lessOne({ ...last, min: 1 }), ...ended];
      return none && [{ kind: "or", options: [rowOf(none), rowOf(some)] }];
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
  return parts.length === 1 ? parts[0]! : { kind: "concat", parts };
}

function options(all: readonly (Regex | null)[]): Regex | null {
  return all.every((each) => each !== null) ? { kind: "or", options: all as Regex[] } : null;
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
  if (body === null) return null;
  const before: Regex = { kind: "repeat", body, min: 0, max: Infinity };
  return { kind: "concat", parts: [{ kind: "start" }, before, set] };
}
