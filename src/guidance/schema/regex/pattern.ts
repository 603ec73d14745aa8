/** Patterns of schemas, which may look around: as expressions that do not. */

import { RecentMap } from "../../../recent-map.ts";
import type { Count } from "../steps.ts";
import { share } from "./automaton.ts";
import { complementOf } from "./complement.ts";
import { withoutLooks } from "./looking.ts";
import { upToFirst } from "./narrow.ts";
import { type Look, type Regex, RegexError, lookIn, parseWithLooks } from "./parse.ts";
import { rangesOf } from "./sets.ts";
import { writeWhole } from "./write.ts";

/** Of texts; of names, which one schema has many of. */
const limits = {
  text: { states: 600, size: 6000, lookups: 2_000_000 },
  name: { states: 100, size: 500, lookups: 500_000 },
};
/** Patterns that are read. */
const mostKnown = 500;

type Outcome = { regexes: readonly Regex[] | null } | { problem: string };

const known = new RecentMap<string, { outcome: Outcome; lookups: number }>(mostKnown);

/**
 * A text must match all of these, or for `isNegated` must not. What is looked ahead at behind a `^` at the beginning, as patterns of passwords do, is
 * one of its own: together they would be too large.
 * @returns null where no text matches
 * @throws RegexError, to follow "the pattern"
 */
export function parsePattern(
  source: string,
  isNegated: boolean,
  count: Count,
): readonly Regex[] | null {
  return remembered(`${isNegated ? "not" : "all"} ${source}`, count, (counted) => {
    const regex = parseWithLooks(source, isNegated);
    if (isNever(regex)) return null;
    const isPlain = lookIn(regex) === null && !hasMiddleAnchor(regex);
    const regexes = isPlain ? [regex] : apart(regex, counted);
    return regexes?.map(upToFirst) ?? null;
  });
}

/** @returns the pattern as one expression; null where no text matches. @throws as `parsePattern` */
export function parseAsOne(source: string, count: Count): Regex | null {
  const one = remembered(`one ${source}`, count, (counted) => {
    const regex = parseWithLooks(source);
    if (lookIn(regex) === null && !hasMiddleAnchor(regex)) return [regex];
    const without = withoutLooks(regex, limits.name, counted);
    return without && [without];
  });
  return one && one[0]!;
}

/** Its sets leave no text: on each way there is one without a character. */
function isNever(regex: Regex): boolean {
  switch (regex.kind) {
    case "set":
      return rangesOf(regex).length === 0;
    case "concat":
      return regex.parts.some(isNever);
    case "or":
      return regex.options.every(isNever);
    case "repeat":
      return regex.min > 0 && isNever(regex.body);
    default:
      return false;
  }
}

/**
 * A schema's patterns come again and again: the same expressions each time, so that what is known of them counts. Each takes
 * the same of every schema.
 */
function remembered(
  key: string,
  count: Count,
  make: (count: Count) => readonly Regex[] | null,
): readonly Regex[] | null {
  let before = known.get(key);
  if (before === undefined) {
    let lookups = 0;
    const counted: Count = (taken) => {
      lookups += taken;
      count(taken);
    };
    const outcome = outcomeOf(() => make(counted));
    if ("regexes" in outcome) for (const regex of outcome.regexes ?? []) share(regex, counted);
    before = { outcome, lookups };
    known.set(key, before);
  } else count(before.lookups);
  if ("problem" in before.outcome) throw new RegexError(before.outcome.problem);
  return before.outcome.regexes;
}

function outcomeOf(make: () => readonly Regex[] | null): Outcome {
  try {
    return { regexes: make() };
  } catch (error) {
    if (error instanceof RegexError) return { problem: error.message };
    throw error;
  }
}

function apart(regex: Regex, count: Count): readonly Regex[] | null {
  const [start, ...others] = regex.kind === "concat" ? regex.parts : [];
  if (start?.kind !== "start") return one(withoutLooks(regex, limits.text, count));
  const behind = others.findIndex((part) => part.kind !== "look" || !part.ahead);
  const ahead = others.slice(0, behind < 0 ? others.length : behind) as Look[];
  const rest: Regex = { kind: "concat", parts: [start, ...others.slice(ahead.length)] };
  try {
    const all = [plain(rest, count), ...ahead.map((look) => seen(look, count))];
    return all.includes(null) ? null : all.filter((each) => each !== "any" && each !== null);
  } catch (error) {
    // What one of them excludes may be too much by itself, and little beside the others.
    if (!(error instanceof RegexError) || ahead.length === 0) throw error;
    return one(withoutLooks(regex, limits.text, count));
  }
}

function one(regex: Regex | null): readonly Regex[] | null {
  return regex && [regex];
}

/** As a pattern of whole texts. */
function seen({ body, negated }: Look, count: Count): Regex | "any" | null {
  const regex = plain(fromStart(body), count);
  if (!negated) return regex;
  return regex === null ? "any" : complementOf(regex, count);
}

function plain(regex: Regex, count: Count): Regex | null {
  const isPlain = lookIn(regex) === null && !hasMiddleAnchor(regex);
  return isPlain ? regex : withoutLooks(regex, limits.text, count);
}

/** In each option, as an anchor before a group has no place inside of it. */
function fromStart(regex: Regex): Regex {
  if (regex.kind === "or") return { kind: "or", options: regex.options.map(fromStart) };
  const parts = regex.kind === "concat" ? regex.parts : [regex];
  return { kind: "concat", parts: [{ kind: "start" }, ...parts] };
}

function hasMiddleAnchor(regex: Regex): boolean {
  try {
    writeWhole(regex);
    return false;
  } catch (error) {
    if (error instanceof RegexError) return true;
    throw error;
  }
}
