/** An expression that looks around, or has anchors in its middle, as one that does not: an automaton looks on its way. */

import type { Count } from "../steps.ts";
import { type AutomatonState, first, last, statesOf } from "./automaton.ts";
import { closed, expressionOf, kindsOfCharacters, placesAfter, tooLarge } from "./deterministic.ts";
import { type Look, type Regex, RegexError } from "./parse.ts";
import { type Range } from "./sets.ts";

/** Of the deterministic automaton, and of what is written of it; longer is not looked for it. */
export interface LookLimits {
  states: number;
  size: number;
  lookups: number;
}

/** One way through the expression, and what it has yet to see ahead. */
interface Thread {
  place: number;
  owed: readonly Owed[];
}

interface Owed {
  look: number;
  places: readonly number[];
}

interface State {
  threads: readonly Thread[];
  /** For each look behind: where its automaton is. */
  behind: readonly (readonly number[])[];
}

interface Looking {
  look: Look;
  states: readonly AutomatonState[];
}

type At = { start: boolean; end: boolean };

/** A `$` in what must not stand behind says where the text must go on. */
const notAtEnd: Look = { kind: "look", ahead: true, negated: true, body: { kind: "end" } };

const inside: At = { start: false, end: false };

/** @returns null where no text matches. @throws RegexError, to follow "the pattern" */
export function withoutLooks(regex: Regex, most: LookLimits, countAll: Count): Regex | null {
  let lookups = 0;
  const count: Count = (taken) => {
    lookups += taken;
    if (lookups > most.lookups) throw tooLarge();
    countAll(taken);
  };
  return new LookingMachine(regex, count).expression(most);
}

class LookingMachine {
  readonly #states: readonly AutomatonState[];
  readonly #looking: readonly Looking[];
  readonly #owedEnd: Owed;
  readonly #count: Count;

  constructor(regex: Regex, count: Count) {
    this.#count = count;
    this.#states = statesOf(regex, { before: true, after: true }, count);
    this.#looking = [...looksIn(this.#states), notAtEnd].map((look) => {
      const states = statesOf(look.body, { before: !look.ahead, after: look.ahead }, count);
      if (looksIn(states).size > 0) throw new RegexError("looks around inside of what it looks at");
      return { look, states };
    });
    this.#owedEnd = { look: this.#looking.length - 1, places: [first] };
  }

  expression(most: LookLimits): Regex | null {
    const all = [...this.#states, ...this.#looking.flatMap(({ states }) => states)];
    const machine = {
      start: this.#start(),
      keyOf: (state: State) => this.#keyOf(state),
      after: (state: State, kind: Range) => this.#after(state, kind[0]),
      isEnd: (state: State, isStart: boolean) => this.#isEnd(state, isStart),
    };
    return expressionOf(machine, kindsOfCharacters(all), most, this.#count);
  }

  #start(): State {
    const at = { start: true, end: false };
    const behind = this.#looking.map(({ look, states }) =>
      look.ahead ? [] : closed(states, [first], at),
    );
    return this.#state([{ place: first, owed: [] }], behind, at);
  }

  #after({ threads, behind }: State, character: number): State | null {
    const next: Thread[] = [];
    for (const { place, owed } of threads) {
      const to = this.#places(this.#states, [place], character);
      const left = to.length === 0 ? null : this.#owedAfter(owed, character);
      if (left !== null) next.push(...to.map((each) => ({ place: each, owed: left })));
    }
    if (next.length === 0) return null;
    const nextBehind = this.#looking.map(({ states }, index) =>
      this.#places(states, behind[index]!, character),
    );
    return this.#state(next, nextBehind, inside);
  }

  #places(
    states: readonly AutomatonState[],
    places: readonly number[],
    character: number,
  ): readonly number[] {
    return placesAfter(states, places, character, this.#count);
  }

  /** @returns null where something is not as it must be */
  #owedAfter(owed: readonly Owed[], character: number): readonly Owed[] | null {
    const left: Owed[] = [];
    for (const { look, places } of owed) {
      const { states, look: looked } = this.#looking[look]!;
      const next = this.#places(states, places, character);
      const isSeen = next.includes(last);
      // Seen, or never to be seen.
      if ((isSeen || next.length === 0) && isSeen === looked.negated) return null;
      if (!isSeen && next.length > 0) left.push({ look, places: next });
    }
    return left;
  }

  #state(threads: readonly Thread[], behind: State["behind"], at: At): State {
    const all = this.#closed(threads, behind, at);
    // Once it has matched, whatever follows.
    const isDone = all.some(({ place, owed }) => place === last && owed.length === 0);
    if (isDone) return { threads: [{ place: last, owed: [] }], behind: behind.map(() => []) };
    return { threads: withoutWorse(all), behind };
  }

  #closed(threads: readonly Thread[], behind: State["behind"], at: At): Thread[] {
    const found = new Map<string, Thread>();
    const open = [...threads];
    for (let thread = open.pop(); thread !== undefined; thread = open.pop()) {
      const key = keyOfThread(thread);
      this.#count(key.length);
      if (found.has(key)) continue;
      found.set(key, thread);
      for (const jump of this.#states[thread.place]!.jumps) {
        const owed = this.#owedOver(jump.at, thread.owed, behind, at);
        if (owed !== null) open.push({ place: jump.to, owed });
      }
    }
    return [...found.values()];
  }

  /** @returns null: there is no way here */
  #owedOver(
    condition: AutomatonState["jumps"][number]["at"],
    owed: readonly Owed[],
    behind: State["behind"],
    at: At,
  ): readonly Owed[] | null {
    if (condition === null) return owed;
    if (typeof condition === "string") return at[condition] ? owed : null;
    const index = this.#looking.findIndex(({ look }) => look === condition);
    const { states } = this.#looking[index]!;
    const from = condition.ahead ? [first] : behind[index]!;
    const places = closed(states, from, at);
    this.#count(places.length);
    if (places.includes(last)) return condition.negated ? null : owed;
    if (at.end) return condition.negated ? owed : null;
    if (condition.ahead) return withOwed(owed, { look: index, places });
    if (!condition.negated) return null;
    const isSeenAtEnd = closed(states, from, { ...at, end: true }).includes(last);
    return isSeenAtEnd ? withOwed(owed, this.#owedEnd) : owed;
  }

  #isEnd({ threads, behind }: State, isStart: boolean): boolean {
    const at = { start: isStart, end: true };
    return this.#closed(threads, behind, at).some(
      ({ place, owed }) =>
        place === last &&
        owed.every(({ look, places }) => {
          const { states, look: looked } = this.#looking[look]!;
          return closed(states, places, at).includes(last) !== looked.negated;
        }),
    );
  }

  #keyOf({ threads, behind }: State): string {
    const key = `${threads.map(keyOfThread).toSorted().join(";")} ${behind.join("/")}`;
    this.#count(key.length);
    return key;
  }
}

function looksIn(states: readonly AutomatonState[]): Set<Look> {
  const jumps = states.flatMap((state) => state.jumps);
  return new Set(jumps.flatMap(({ at }) => (typeof at === "object" && at !== null ? [at] : [])));
}

function withOwed(owed: readonly Owed[], more: Owed): readonly Owed[] {
  const isOwed = owed.some((each) => keyOfOwed(each) === keyOfOwed(more));
  return isOwed ? owed : [...owed, more];
}

/** Of two ways at one place the one that owes less can do all that the other can. */
function withoutWorse(threads: readonly Thread[]): Thread[] {
  return threads.filter(
    (thread) =>
      thread.owed.length === 0 ||
      !threads.some(
        (other) => other !== thread && other.place === thread.place && owesLess(other, thread),
      ),
  );
}

function owesLess(one: Thread, other: Thread): boolean {
  if (one.owed.length >= other.owed.length) return false;
  const keys = new Set(other.owed.map(keyOfOwed));
  return one.owed.every((owed) => keys.has(keyOfOwed(owed)));
}

function keyOfThread({ place, owed }: Thread): string {
  return owed.length === 0 ? String(place) : `${place}:${owed.map(keyOfOwed).toSorted().join("+")}`;
}

function keyOfOwed({ look, places }: Owed): string {
  return `${look}=${places.join()}`;
}
