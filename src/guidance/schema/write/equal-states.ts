/** States that say the same, as of a reference beside each of a hundred descriptions: written once. */

import type { Alternative, State } from "../types.ts";

/** States that contain equal ones are equal in the next round. */
const mostRounds = 10;

/** @param live those that have a value. @returns for each of them one that stands for all that are equal to it */
export function equalStates(live: ReadonlySet<State>): ReadonlyMap<State, State> {
  const all = [...live];
  let same = new Map(all.map((state) => [state, state]));
  for (let round = 0; round < mostRounds; round++) {
    const ids = new Map([...new Set(same.values())].map((state, index) => [state, index]));
    const idOf = (state: State): number => ids.get(same.get(state) ?? state) ?? -1;
    const byKey = new Map<string, State>();
    const next = new Map<State, State>();
    for (const state of all) {
      const key = JSON.stringify(state.alternatives?.map((each) => shapeOf(each, idOf)));
      const first = byKey.get(key) ?? state;
      byKey.set(key, first);
      next.set(state, first);
    }
    same = next;
    if (byKey.size === ids.size) break;
  }
  return same;
}

function shapeOf(alternative: Alternative, idOf: (state: State) => number): unknown {
  switch (alternative.type) {
    case "object": {
      const { properties, patterns, rest, min, max } = alternative;
      const named = properties.map(({ name, state, required }) => [name, idOf(state), required]);
      // Infinity is no JSON.
      return [
        named,
        patterns.map(({ regex, state }) => [regex, idOf(state)]),
        idOf(rest),
        min,
        String(max),
      ];
    }
    case "array": {
      const { prefix, rest, min, max, distinct = null, marker } = alternative;
      return {
        prefix: prefix.map(idOf),
        rest: idOf(rest),
        min,
        max: String(max),
        distinct,
        marker,
      };
    }
    default:
      return alternative.schema;
  }
}
