/** Arrays without repeats: as what their items leave, or as arrays whose items the masks' engine remembers. */

import { lacking } from "../write/unique.ts";
import type { Alternative, ArrayAlternative, Marker, Scalar, State } from "../types.ts";
import { type Solver, jsonTypes } from "./keyword.ts";
import { fewestItems, mostRemembered } from "./sizes.ts";

export function withoutRepeats(
  array: ArrayAlternative,
  path: string,
  solver: Solver,
): ArrayAlternative[] {
  const { prefix, rest, max } = array;
  if (max <= 1) return [array];
  if (prefix.length >= max || !solver.mayHold(rest.literals)) {
    const tuple = { ...array, max: Math.min(max, prefix.length) };
    if (areDisjoint(prefix.slice(0, tuple.max), solver)) return [tuple];
  } else if (prefix.length === 0) {
    const values = valuesOf(rest, solver);
    const lists = listsWithoutRepeats(values, array, mostLists[solver.hasRules ? "few" : "all"]);
    if (lists !== null) {
      solver.count(lists.length * perList);
      return lists.map((list) => ({
        type: "array",
        prefix: list.map((value) => solver.state([solver.made({ const: value })])),
        rest,
        min: list.length,
        max: list.length,
      }));
    }
    if (solver.hasRules && values !== null && values.length <= mostDistinct)
      return array.min > values.length
        ? []
        : [{ ...array, max: Math.min(max, values.length), distinct: values }];
  }
  return remembering(array, path, solver);
}

/** The items are compared while they are written. None may be left with earlier items' values only. */
function remembering(array: ArrayAlternative, path: string, solver: Solver): ArrayAlternative[] {
  const { prefix, rest, min } = array;
  const others = fewestItems(rest, solver);
  let max = Math.min(array.max, Math.max(prefix.length, others));
  const places = prefix.map((state, place) => fewestItems(state, solver) > place);
  if (places.includes(false)) max = Math.min(max, places.indexOf(false));
  const marker = markerOf(prefix[0] ?? rest, solver);
  const runOut = [...prefix, rest].some((state) => mayRunOut(state, solver, 0));
  if (max < min || marker === null || runOut) {
    const reason = "needs to remember all earlier items";
    solver.report({ path, keyword: "uniqueItems", reason });
    return [array];
  }
  const isLimited = max < Math.min(array.max, mostRemembered);
  const remembered: ArrayAlternative = {
    ...array,
    max: max >= mostRemembered ? array.max : max,
    unique: path,
    ...(isLimited ? { runsOut: true } : {}),
  };
  if (marker !== "lacking") return [{ ...remembered, marker }];
  const first = (prefix[0] ?? rest).literals;
  const allowed = solver.state([...first, solver.made({ not: { const: lacking } })]);
  return [{ ...remembered, prefix: [allowed, ...prefix.slice(1)] }];
}

/** Values inside of each other that are looked at. */
const deepest = 3;

/**
 * In a list of which all items were there but one, this one must come next, though another list may forbid it: of lists that
 * must differ, no item is such a list.
 */
function mayRunOut(state: State, solver: Solver, depth: number): boolean {
  const known = runningOut.get(state);
  if (known !== undefined || depth >= deepest) return known ?? false;
  // Until it is known, as of what contains itself.
  runningOut.set(state, false);
  const runsOut = hasOneThatRunsOut(state, solver, depth);
  runningOut.set(state, runsOut);
  return runsOut;
}

const runningOut = new WeakMap<State, boolean>();

function hasOneThatRunsOut({ literals }: State, solver: Solver, depth: number): boolean {
  const inner = (state: State): boolean => mayRunOut(state, solver, depth + 1);
  const isOne = (each: Alternative): boolean => {
    if (each.type === "array")
      return each.runsOut === true || [...each.prefix, each.rest].some(inner);
    if (each.type !== "object") return false;
    return (
      [...each.properties, ...each.patterns].some(({ state }) => inner(state)) || inner(each.rest)
    );
  };
  if (literals.length === 0) return false;
  return (
    solver.alternatives("array", literals).some(isOne) ||
    solver.alternatives("object", literals).some(isOne)
  );
}

/** What the first item may never be, and tells the array from others. */
function markerOf({ literals }: State, solver: Solver): Marker | "lacking" | null {
  if (solver.alternatives("number", literals).length === 0) return "number";
  const strings = solver.alternatives("string", literals);
  if (strings.length === 0) return "string";
  const isFree = strings.some((one) => "schema" in one && Object.keys(one.schema).length === 1);
  return isFree ? "lacking" : null;
}

/** Where one way to be an array may repeat items and another may not, only a reader of all of it could tell them apart. */
export function withoutMixture(found: readonly Alternative[], { report }: Solver): Alternative[] {
  const arrays = found.filter((each) => each.type === "array");
  const remembering = arrays.find(({ unique }) => unique !== undefined);
  const others = arrays.filter((one) => one.unique === undefined && one.max > 1);
  if (remembering === undefined || others.every(isWithoutRepeats)) return [...found];
  const reason = "stands beside other ways to be an array, which may repeat items";
  report({ path: remembering.unique!, keyword: "uniqueItems", reason });
  return found.map((each) => {
    if (each.type !== "array") return each;
    const { marker: _marker, unique: _unique, ...array } = each;
    return array;
  });
}

function isWithoutRepeats(array: ArrayAlternative): boolean {
  return array.distinct !== undefined;
}

function areDisjoint(states: readonly State[], { mayHold }: Solver): boolean {
  return states.every((state, index) =>
    states.slice(index + 1).every((other) => !mayHold([...state.literals, ...other.literals])),
  );
}

/** All values of a state, if it has only scalars that are counted. */
function valuesOf(state: State, { alternatives }: Solver): readonly Scalar[] | null {
  const values: Scalar[] = [];
  for (const type of jsonTypes)
    for (const alternative of alternatives(type, state.literals)) {
      if (!("values" in alternative) || alternative.values === null) return null;
      values.push(...alternative.values);
    }
  return [...new Set(values)];
}

/** As far as rules count the bits of their parameter. */
const mostDistinct = 63;
/** All arrays that the values make, one by one: where rules cannot tell whether an array has a value, or these are shorter. */
const mostLists = { few: 20, all: 500 };
/** Lookups. */
const perList = 20;

/** @returns null where there are too many */
function listsWithoutRepeats(
  values: readonly Scalar[] | null,
  { min, max }: ArrayAlternative,
  most: number,
): Scalar[][] | null {
  if (values === null) return null;
  let count = 0;
  let ofLength = 1;
  for (let length = 0; length <= Math.min(max, values.length); length++) {
    count += ofLength;
    ofLength *= values.length - length;
  }
  if (count > most) return null;
  return arrangements(values, max).filter((list) => list.length >= min);
}

/** Each selection of at most so many of the values, in every order. */
function arrangements(values: readonly Scalar[], most: number): Scalar[][] {
  const found: Scalar[][] = [[]];
  const extend = (list: Scalar[], left: readonly Scalar[]): void => {
    if (list.length === most) return;
    left.forEach((value, index) => {
      const longer = [...list, value];
      found.push(longer);
      extend(longer, left.toSpliced(index, 1));
    });
  };
  extend([], values);
  return found;
}
