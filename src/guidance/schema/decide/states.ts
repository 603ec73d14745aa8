/** All states that a schema's values may be in, worked out from its root. */

import { FermataError } from "../../../errors.ts";
import type { SchemaDocument } from "../read/document.ts";
import type { Alternative, JsonType, Literal, ObjectAlternative, State } from "../types.ts";
import type { SchemaIssue } from "../types.ts";
import type { Steps } from "../steps.ts";
import { arrayAlternatives } from "./arrays.ts";
import { booleans, nulls } from "./constants.ts";
import { Expander } from "./expand.ts";
import type { Facts } from "./facts.ts";
import { type Solver, jsonTypes } from "./keyword.ts";
import { Conjunctions } from "../regex/cost.ts";
import { numbers } from "./numbers.ts";
import { objectAlternatives } from "./objects.ts";
import { strings } from "./strings.ts";
import { withoutMixture } from "./unique.ts";

const maxStates = 20_000;
/** Properties that may be left out in a row, those of all alternatives together where they begin. */
const maxChoice = 490;
/** Lookups for each thing that is known of a value. */
const perFact = 10;
/** How deep it is looked whether two branches exclude each other. */
const maxProbeDepth = 4;

interface StatesOptions {
  /** Objects with named properties have no others unless the schema says so. */
  closed: boolean;
  objectOnly: boolean;
  /** What is written in rules can be. */
  hasRules: boolean;
  steps: Steps;
  leavesOpen: boolean;
}

export class States {
  readonly root: State;
  /** In the order they were met. */
  readonly all: State[] = [];
  readonly issues = new Map<string, SchemaIssue>();
  readonly #document: SchemaDocument;
  readonly #solver: Solver;
  readonly #steps: Steps;
  readonly #expander: Expander;
  readonly #reached = new Set<State>();
  readonly #byKey = new Map<string, State>();
  readonly #probes = new Map<string, boolean>();
  #probeDepth = 0;

  /** @throws FermataError schema_too_large, unless it `leavesOpen` what takes too much */
  constructor(document: SchemaDocument, options: StatesOptions) {
    const { closed, objectOnly, hasRules, steps, leavesOpen } = options;
    this.#document = document;
    this.#steps = steps;
    this.#solver = {
      isClosed: closed,
      hasRules,
      conjunctions: new Conjunctions(steps),
      count: steps.count,
      report: (issue) => this.#report(issue),
      state: (literals) => this.#stateOf(literals),
      made: (schema, base) => this.#made(schema, base),
      alternatives: (type, literals) => this.#alternatives(type, literals),
      mayHold: (literals) => this.#probe(jsonTypes, literals),
    };
    this.#expander = new Expander(document, {
      report: (issue) => this.#report(issue),
      mayHold: (type, literals) => this.#probe([type], literals),
      steps,
    });
    const root: Literal = { node: document.root, holds: true, scopes: [] };
    this.root = this.#stateOf(objectOnly ? [root, this.#made({ type: "object" })] : [root]);
    // Before the steps are used up.
    const anything = leavesOpen ? this.#alternativesOf(this.#stateOf([])) : null;
    for (let next = 0; next < this.all.length; next++) {
      try {
        this.#workOut(this.all[next]!);
      } catch (error) {
        const isTooLarge = error instanceof FermataError && error.code === "schema_too_large";
        if (anything === null || !isTooLarge) throw error;
        this.#leaveOpen(next, anything, objectOnly);
        break;
      }
    }
  }

  /** All states from there on. */
  #leaveOpen(from: number, anything: Alternative[], objectOnly: boolean): void {
    const [literal] = this.all[from]!.literals;
    const { schema = true, path = "#" } = literal?.node ?? {};
    const [keyword = "type"] = Object.keys(schema);
    const reason = "makes too many combinations with what it leads to";
    this.#report({ path, keyword, reason });
    for (const state of this.all.slice(from)) {
      const isObject = objectOnly && state === this.root;
      state.alternatives = anything.filter(({ type }) => !isObject || type === "object");
    }
  }

  /** Has a value, as far as it can be told. */
  inhabited(): ReadonlySet<State> {
    const live = new Set<State>();
    // A value is finite: what needs itself to be has none.
    for (let grew = true; grew;) {
      grew = false;
      for (const state of this.all) {
        if (live.has(state) || !state.alternatives?.some((each) => isPossible(each, live)))
          continue;
        live.add(state);
        grew = true;
      }
    }
    return live;
  }

  #workOut(state: State): void {
    const found = withoutMixture(this.#alternativesOf(state), this.#solver);
    state.alternatives = this.#withinRow(found, state);
  }

  #alternativesOf({ literals }: State): Alternative[] {
    return jsonTypes.flatMap((type) => this.#alternatives(type, literals));
  }

  /** The mask engine follows each property that may come next, four steps for each. */
  #withinRow(found: Alternative[], { literals }: State): Alternative[] {
    const objects = found.filter((each) => each.type === "object");
    const first = objects.reduce((sum, object) => sum + longestChoice(object).first, 0);
    const longest = Math.max(0, ...objects.map((object) => longestChoice(object).longest));
    if (Math.max(first, longest) <= maxChoice) return found;
    const path = literals[0]?.node.path ?? "#";
    const reason = `leaves a choice of more than ${maxChoice} properties at one place`;
    this.#report({ path, keyword: "properties", reason });
    const open: Alternative = {
      type: "object",
      properties: [],
      patterns: [],
      rest: this.#stateOf([]),
      min: 0,
      max: Infinity,
    };
    return [open, ...found.filter((each) => each.type !== "object")];
  }

  #alternatives(type: JsonType, literals: readonly Literal[]): Alternative[] {
    return this.#expander.expand(type, literals).flatMap((facts) => this.#finish(facts));
  }

  #finish(facts: Facts): Alternative[] {
    this.#steps.count(facts.size() * perFact);
    switch (facts.type) {
      case "null":
        return nulls(facts);
      case "boolean":
        return booleans(facts);
      case "number":
        return numbers(facts, this.#solver);
      case "string":
        return strings(facts, this.#solver);
      case "array":
        return arrayAlternatives(facts, this.#solver);
      case "object":
        return objectAlternatives(facts, this.#solver);
    }
  }

  #made(schema: unknown, base?: string): Literal {
    return { node: this.#document.make(schema, "#", base), holds: true, scopes: [] };
  }

  #stateOf(literals: readonly Literal[]): State {
    this.#steps.count((literals.length + 1) * perFact);
    const kept = new Map<string, Literal>();
    for (const literal of literals)
      if (!isTrivial(literal)) kept.set(keyOf(literal), { ...literal, scopes: [] });
    const key = [...kept.keys()].toSorted().join(" ");
    let state = this.#byKey.get(key);
    if (state === undefined) {
      state = { literals: [...kept.values()] };
      this.#byKey.set(key, state);
    }
    // What only a probe met is not part of the schema.
    if (this.#probeDepth === 0 && !this.#reached.has(state)) this.#reach(state);
    return state;
  }

  #reach(state: State): void {
    if (this.all.length >= maxStates)
      throw new FermataError(
        "schema_too_large",
        "The schema combines its parts in too many ways. Send a simpler one.",
      );
    this.#reached.add(state);
    this.all.push(state);
  }

  #probe(types: readonly JsonType[], literals: readonly Literal[]): boolean {
    if (this.#probeDepth >= maxProbeDepth) return true;
    const key = `${types.join()} ${literals.map(keyOf).toSorted().join(" ")}`;
    const known = this.#probes.get(key);
    if (known !== undefined) return known;
    this.#probeDepth += 1;
    try {
      // Until it is known, itself included, nothing is excluded.
      this.#probes.set(key, true);
      const may = types.some((type) =>
        this.#alternatives(type, withoutScopes(literals)).some((each) => this.#isPlausible(each)),
      );
      this.#probes.set(key, may);
      return may;
    } finally {
      this.#probeDepth -= 1;
    }
  }

  #isPlausible(alternative: Alternative): boolean {
    if (alternative.type === "object")
      return alternative.properties.every(
        ({ required, state }) => !required || this.#probe(jsonTypes, state.literals),
      );
    if (alternative.type === "array")
      return alternative.prefix
        .slice(0, alternative.min)
        .every((state) => this.#probe(jsonTypes, state.literals));
    return true;
  }

  #report(issue: SchemaIssue): void {
    if (this.#probeDepth > 0) return;
    this.issues.set(`${issue.path} ${issue.keyword}`, issue);
  }
}

function longestChoice({ properties }: ObjectAlternative): { first: number; longest: number } {
  let first: number | null = null;
  let longest = 0;
  let run = 0;
  for (const { required } of properties) {
    run = required ? 0 : run + 1;
    if (required) first ??= longest;
    longest = Math.max(longest, run);
  }
  return { first: first ?? longest, longest };
}

/** Scopes belong to one expansion. */
function withoutScopes(literals: readonly Literal[]): Literal[] {
  return literals.map((literal) => ({ ...literal, scopes: [] }));
}

function keyOf({ node, holds }: Literal): string {
  return `${holds ? "+" : "-"}${node.id}`;
}

function isTrivial({ node, holds }: Literal): boolean {
  const { schema } = node;
  return typeof schema === "boolean" ? schema === holds : holds && Object.keys(schema).length === 0;
}

function isPossible(alternative: Alternative, live: ReadonlySet<State>): boolean {
  switch (alternative.type) {
    case "object": {
      const { properties, patterns, rest, min } = alternative;
      if (properties.some(({ required, state }) => required && !live.has(state))) return false;
      const isOpen = live.has(rest) || patterns.some(({ state }) => live.has(state));
      return isOpen || properties.filter(({ state }) => live.has(state)).length >= min;
    }
    case "array": {
      const { prefix, rest, min } = alternative;
      return (
        prefix.slice(0, min).every((state) => live.has(state)) &&
        (min <= prefix.length || live.has(rest))
      );
    }
    default:
      return true;
  }
}
