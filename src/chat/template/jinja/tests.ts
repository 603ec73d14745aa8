/** Jinja's tests: those that the library lacks, and the form with arguments, which its parser does not know. */

import type { RenderBudget } from "./budget.ts";
import {
  Environment,
  type Token,
  type Value,
  isArray,
  isObject,
  isString,
  isUndefined,
  ownOf,
  textOf,
} from "./library.ts";
import { isFilter } from "./filters.ts";
import { bracketEnds } from "./tokens.ts";
import type { Test } from "./types.ts";
import { equals, isIn, numberOf, order } from "./values.ts";

const libraryTests = new Environment().tests;

/** Of the tests that take one. */
const withArgument: Readonly<Record<string, (value: Value, other: Value) => boolean>> = {
  eq: equals,
  equalto: equals,
  ne: (value, other) => !equals(value, other),
  lt: (value, other) => order(value, other) < 0,
  lessthan: (value, other) => order(value, other) < 0,
  le: (value, other) => order(value, other) <= 0,
  gt: (value, other) => order(value, other) > 0,
  greaterthan: (value, other) => order(value, other) > 0,
  ge: (value, other) => order(value, other) >= 0,
  divisibleby,
  in: isIn,
  sameas: (value, other) =>
    value === other ||
    (value.type === other.type && !isArray(value) && !isObject(value) && equals(value, other)),
};

const symbols: Readonly<Record<string, string>> = {
  "==": "eq",
  "!=": "ne",
  "<": "lt",
  "<=": "le",
  ">": "gt",
  ">=": "ge",
};

const withoutArgument: Readonly<Record<string, Test>> = {
  float: (value) => value.type === "FloatValue",
  filter: (value) => isString(value) && isFilter(value.value),
  test: (value) => isString(value) && find(value.value) !== undefined,
  number: (value) => value.type === "BooleanValue" || libraryTests.get("number")!(value),
  lower: isLower,
  upper: isUpper,
  // What is undefined can be iterated, and has nothing in it.
  iterable: (value) =>
    isUndefined(value) || isObject(value) || libraryTests.get("iterable")!(value),
  sequence: (value) => isUndefined(value) || libraryTests.get("sequence")!(value),
};

function find(name: string): Test | undefined {
  const compare = ownOf(withArgument, ownOf(symbols, name) ?? name);
  if (compare !== undefined)
    return (value, [other]) => {
      if (other === undefined) throw new TypeError(`the test "${name}" takes an argument`);
      return compare(value, other);
    };
  return ownOf(withoutArgument, name) ?? libraryTests.get(name);
}

/** If there is none, the one returned throws: a template may name what it never asks. */
export function testNamed(name: string): Test {
  const none = (): never => {
    throw new TypeError(`there is no test "${name}"`);
  };
  return find(name) ?? none;
}

/** Asks it of the value. */
export function holds(
  test: Test,
  value: Value,
  args: readonly Value[],
  budget: RenderBudget,
): boolean {
  // The others look at its type.
  const readsAll = args.length > 0 || test === isLower || test === isUpper;
  if (readsAll) budget.walk(value);
  for (const arg of args) {
    budget.walk(arg);
    if (isString(arg) && isString(value)) budget.search(arg.value, value.value);
  }
  return test(value, args);
}

function isLower(value: Value): boolean {
  return isOfCase(value, "toLowerCase");
}

function isUpper(value: Value): boolean {
  return isOfCase(value, "toUpperCase");
}

/** Without a letter, a text is of neither case. */
function isOfCase(value: Value, change: "toLowerCase" | "toUpperCase"): boolean {
  const text = textOf(value);
  return text === text[change]() && text.toLowerCase() !== text.toUpperCase();
}

function divisibleby(value: Value, other: Value): boolean {
  const divisor = numberOf(other);
  if (divisor === 0) throw new TypeError("nothing is divisible by 0");
  return numberOf(value) % divisor === 0;
}

/** As filters, which have arguments. No template can write such a name. */
const prefix = { is: "is ", isNot: "is not " };

/** The test that a filter's name stands for, or undefined. */
export function testOfFilter(name: string): { test: Test; negate: boolean } | undefined {
  const negate = name.startsWith(prefix.isNot);
  if (!negate && !name.startsWith(prefix.is)) return undefined;
  return { test: testNamed(name.slice((negate ? prefix.isNot : prefix.is).length)), negate };
}

/** `value is name(…)` and `value is name …` become filters. */
export function withTestCalls(tokens: readonly Token[]): Token[] {
  const ends = bracketEnds(tokens);
  const written: Token[] = [];
  const closings = new Map<number, number>();
  for (let at = 0; at <= tokens.length; at++) {
    for (let count = closings.get(at) ?? 0; count > 0; count--)
      written.push({ type: "CloseParen", value: ")" });
    const token = tokens[at];
    if (token === undefined) break;
    const nameAt = at + (isWord(tokens[at + 1], "not") ? 2 : 1);
    const name = tokens[nameAt];
    const next = tokens[nameAt + 1];
    const hasBrackets = next?.type === "OpenParen";
    const isCall =
      isWord(token, "is") &&
      name?.type === "Identifier" &&
      (hasBrackets || (Object.hasOwn(withArgument, name.value) && next !== undefined));
    if (!isCall) {
      written.push(token);
      continue;
    }
    const form = nameAt === at + 1 ? prefix.is : prefix.isNot;
    written.push({ type: "Pipe", value: "|" }, { type: "Identifier", value: form + name.value });
    if (!hasBrackets) {
      written.push({ type: "OpenParen", value: "(" });
      const end = operandEnd(tokens, nameAt + 1, ends);
      closings.set(end, (closings.get(end) ?? 0) + 1);
    }
    at = nameAt;
  }
  return written;
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.type === "Identifier" && token.value === word;
}

/** Behind one value without operators: its members, items and calls are of it. */
function operandEnd(
  tokens: readonly Token[],
  start: number,
  ends: ReadonlyMap<number, number>,
): number {
  let at = (ends.get(start) ?? start) + 1;
  for (;;) {
    const type = tokens[at]?.type;
    if (type === "Dot") at += 2;
    else if (type === "OpenParen" || type === "OpenSquareBracket") at = (ends.get(at) ?? at) + 1;
    else return at;
  }
}
