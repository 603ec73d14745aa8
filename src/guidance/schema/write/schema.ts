/** States to a schema in the keywords that the mask engine has, every one of them exact. */

import type { States } from "../decide/states.ts";
import { distinctKeyword } from "./distinct.ts";
import { equalStates } from "./equal-states.ts";
import { uniqueKeyword } from "./unique.ts";
import type {
  Alternative,
  ArrayAlternative,
  JsonObject,
  ObjectAlternative,
  State,
} from "../types.ts";

/** States inside of each other that are written so; below, each is a definition. */
const maxNesting = 8;
/** Characters of what is written wherever it is used; a longer one, as of a pattern that looks around, is a definition. */
const mostRepeated = 300;

/** @returns null when no value satisfies the schema */
export function writeSchema(states: States): JsonObject | null {
  const live = states.inhabited();
  if (!live.has(states.root)) return null;
  return new SchemaWriter(live).write(states.root);
}

class SchemaWriter {
  readonly #live: ReadonlySet<State>;
  /** What is written for each. */
  readonly #same: ReadonlyMap<State, State>;
  readonly #uses = new Map<State, number>();
  readonly #recursive = new Set<State>();
  readonly #definitions: JsonObject = {};
  readonly #named = new Map<State, string>();
  #nesting = 0;

  constructor(live: ReadonlySet<State>) {
    this.#live = live;
    this.#same = equalStates(live);
  }

  write(start: State): JsonObject {
    const root = this.#same.get(start)!;
    this.#count(root);
    const schema = this.#inner(root);
    return Object.keys(this.#definitions).length === 0
      ? schema
      : { ...schema, $defs: this.#definitions };
  }

  /** Finds what is used twice and what contains itself. Depth-first, without recursion. */
  #count(root: State): void {
    const onPath = new Set<State>();
    const stack: { state: State; left: State[] }[] = [];
    const enter = (state: State): void => {
      this.#uses.set(state, (this.#uses.get(state) ?? 0) + 1);
      if (onPath.has(state)) this.#recursive.add(state);
      if (this.#uses.get(state) !== 1) return;
      onPath.add(state);
      stack.push({ state, left: this.#children(state) });
    };
    enter(root);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = top.left.pop();
      if (next !== undefined) enter(next);
      else {
        stack.pop();
        onPath.delete(top.state);
      }
    }
  }

  #children(state: State): State[] {
    return (state.alternatives ?? [])
      .flatMap((each): State[] => {
        if (each.type === "object")
          return [...each.properties, ...each.patterns, { state: each.rest }].map(
            (item) => item.state,
          );
        return each.type === "array" ? [...each.prefix, each.rest] : [];
      })
      .flatMap((child) => this.#same.get(child) ?? []);
  }

  #schema(written: State): JsonObject | boolean {
    const state = this.#same.get(written);
    if (state === undefined) return false;
    if (state.literals.length === 0) return {};
    const isShared = (this.#uses.get(state) ?? 0) > 1 || this.#nesting >= maxNesting;
    if (!this.#recursive.has(state) && (!isShared || isSmall(state))) return this.#nested(state);
    let name = this.#named.get(state);
    if (name === undefined) {
      name = `s${this.#named.size}`;
      this.#named.set(state, name);
      const outer = this.#nesting;
      this.#nesting = 0;
      this.#definitions[name] = this.#inner(state);
      this.#nesting = outer;
    }
    return { $ref: `#/$defs/${name}` };
  }

  #nested(state: State): JsonObject {
    this.#nesting += 1;
    const schema = this.#inner(state);
    this.#nesting -= 1;
    return schema;
  }

  #inner(state: State): JsonObject {
    if (state.literals.length === 0) return {};
    const seen = new Set<string>();
    const options: JsonObject[] = [];
    for (const alternative of state.alternatives ?? []) {
      if (!this.#isLive(alternative)) continue;
      const option = this.#alternative(alternative);
      const text = JSON.stringify(option);
      if (!seen.has(text)) options.push(option);
      seen.add(text);
    }
    return options.length === 1 ? options[0]! : { anyOf: options };
  }

  #isLive(alternative: Alternative): boolean {
    if (alternative.type === "object")
      return alternative.properties.every(
        ({ required, state }) => !required || this.#live.has(state),
      );
    if (alternative.type === "array")
      return alternative.prefix.slice(0, alternative.min).every((state) => this.#live.has(state));
    return true;
  }

  #alternative(alternative: Alternative): JsonObject {
    switch (alternative.type) {
      case "object":
        return this.#object(alternative);
      case "array":
        return this.#array(alternative);
      default:
        return alternative.schema;
    }
  }

  #array({ prefix, rest, min, max, distinct, marker }: ArrayAlternative): JsonObject {
    if (distinct !== undefined)
      return { type: "array", [distinctKeyword]: distinct, minItems: min, maxItems: max };
    const dead = prefix.findIndex((state) => !this.#live.has(state));
    const tuple = dead < 0 ? prefix : prefix.slice(0, dead);
    const items = dead < 0 ? this.#schema(rest) : false;
    const limit = items === false ? Math.min(max, tuple.length) : max;
    return {
      type: "array",
      ...(tuple.length > 0
        ? { prefixItems: tuple.slice(0, limit).map((state) => this.#schema(state)) }
        : {}),
      items,
      ...(min > 0 ? { minItems: min } : {}),
      ...(limit < Infinity ? { maxItems: limit } : {}),
      ...(marker !== undefined && limit > 1 ? { [uniqueKeyword]: marker } : {}),
    };
  }

  #object({ properties, patterns, rest, min, max }: ObjectAlternative): JsonObject {
    const others = this.#schema(rest);
    const isOpen = others !== false || patterns.length > 0;
    const named = properties.filter(({ state }) => isOpen || this.#live.has(state));
    const required = properties.filter((property) => property.required).map(({ name }) => name);
    return {
      type: "object",
      properties: Object.fromEntries(named.map(({ name, state }) => [name, this.#schema(state)])),
      ...(patterns.length > 0
        ? {
            patternProperties: Object.fromEntries(
              patterns.map(({ regex, state }) => [`^(?:${regex})$`, this.#schema(state)]),
            ),
          }
        : {}),
      ...(required.length > 0 ? { required } : {}),
      additionalProperties: others,
      ...(min > 0 ? { minProperties: min } : {}),
      ...(isOpen && max < Infinity ? { maxProperties: max } : {}),
    };
  }
}

function isSmall({ alternatives = [] }: State): boolean {
  return (
    alternatives.length <= 2 &&
    alternatives.every(
      (each) =>
        "schema" in each &&
        (each.values?.length ?? 0) <= 8 &&
        JSON.stringify(each.schema).length <= mostRepeated,
    )
  );
}
