/** What expressions cost the mask engine, whose automata it builds while it walks: measured, for it cannot say so before. */

import { RecentMap } from "../../../recent-map.ts";
import type { Steps } from "../steps.ts";
import { automatonOf } from "./automaton.ts";
import { isSmallTogether } from "./conjunction.ts";
import { isSimple } from "./narrow.ts";
import { type Regex, RegexError, sizeOf } from "./parse.ts";

/** One count beside which there is hardly another; several of them together. */
const most = { alone: 10_000, together: 1000, beside: 16 };
/**
 * Expressions for the same text, and positions in counts of several that may begin anywhere. Where there are more of these
 * and all are anchored, as formats are, the states of their automaton tell.
 */
const joined = { expressions: 4, most: 12, positions: 8, states: 2000 };

/** @throws RegexError, to follow "the pattern" */
export function checkCounts(regex: Regex): void {
  const sizes = countsOf(regex);
  const largest = Math.max(0, ...sizes);
  const all = sum(sizes);
  const limit = all - largest > most.beside ? most.together : most.alone;
  if (all > limit) throw new RegexError(`counts more than ${limit} positions`);
}

/** Formats and patterns come again and again: whether they are small together, and the lookups that it takes to tell. */
const remembered = new RecentMap<string, { isSmall: boolean; lookups: number }>(200);

class TooLong extends Error {}

interface Pattern {
  source: string;
  regex: Regex;
}

/** Of one schema: which expressions one text can be held to. */
export class Conjunctions {
  readonly #steps: Steps;
  readonly #known = new Map<string, boolean>();

  constructor(steps: Steps) {
    this.#steps = steps;
  }

  /** Those which one text can be held to together, in their order. @throws FermataError schema_too_large */
  holdable<T extends Pattern>(patterns: readonly T[]): Set<T> {
    if (patterns.length < 2) return new Set(patterns);
    const kept = new Set<T>();
    let positions = 0;
    for (const pattern of patterns) {
      const cost = floatingCounts(pattern.regex);
      if (kept.size === joined.most) continue;
      const isFloating = positions > 0 && cost > 0 && positions + cost > joined.positions;
      const isMany = kept.size >= joined.expressions;
      if (isMany && [...kept, pattern].filter(({ regex }) => !isSimple(regex)).length > 1) continue;
      const mayBeDear = isFloating || isMany;
      if (mayBeDear && !this.#areSmall([...kept, pattern])) continue;
      positions += cost;
      kept.add(pattern);
    }
    return kept;
  }

  /** False also where it takes too long to tell. */
  #areSmall(patterns: readonly Pattern[]): boolean {
    if (!patterns.every(({ regex }) => isAnchored(regex) && !hasProperty(regex))) return false;
    const key = JSON.stringify(patterns.map(({ source }) => source));
    let isSmall = this.#known.get(key);
    if (isSmall === undefined) {
      isSmall = this.#tell(key, patterns);
      this.#known.set(key, isSmall);
    }
    return isSmall;
  }

  #tell(key: string, patterns: readonly Pattern[]): boolean {
    const regexes = patterns.map(({ regex }) => regex);
    // Of this schema, whether it was remembered or not.
    for (const regex of regexes) automatonOf(regex, this.#steps.count);
    let lookups = 0;
    const count = (taken: number): void => {
      lookups += taken;
      if (!this.#steps.countInConjunction(taken)) throw new TooLong();
    };
    try {
      const before = remembered.get(key);
      if (before !== undefined) {
        // A schema takes the same, whatever came before it.
        count(before.lookups);
        return before.isSmall;
      }
      const isSmall = isSmallTogether(regexes, joined.states, count);
      remembered.set(key, { isSmall, lookups });
      return isSmall;
    } catch (error) {
      if (error instanceof TooLong) return false;
      throw error;
    }
  }
}

/** 0 where every count begins at a known place. */
function floatingCounts(regex: Regex): number {
  const sizes = countsOf(regex);
  const beginsAtStart = regex.kind === "concat" && regex.parts[0]?.kind === "start";
  return beginsAtStart && sizes.length < 2 ? 0 : sum(sizes);
}

/** Every match begins at the text's start. */
function isAnchored(regex: Regex): boolean {
  if (regex.kind === "or") return regex.options.every(isAnchored);
  return regex.kind === "start" || (regex.kind === "concat" && isAnchored(regex.parts[0]!));
}

/** What has a Unicode property is not known here, and is hundreds of ranges to the mask engine. */
function hasProperty(regex: Regex): boolean {
  switch (regex.kind) {
    case "set":
      return regex.properties.length > 0;
    case "concat":
      return regex.parts.some(hasProperty);
    case "or":
      return regex.options.some(hasProperty);
    case "repeat":
      return hasProperty(regex.body);
    default:
      return false;
  }
}

/** Positions of the outermost counted repetitions. */
function countsOf(regex: Regex): number[] {
  switch (regex.kind) {
    case "concat":
      return regex.parts.flatMap(countsOf);
    case "or":
      return regex.options.flatMap(countsOf);
    case "repeat": {
      const isCounted = regex.min > 1 || (regex.max > 1 && regex.max < Infinity);
      return isCounted ? [sizeOf(regex)] : countsOf(regex.body);
    }
    default:
      return [];
  }
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}
