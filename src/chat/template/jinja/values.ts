/** Python's rules for values: when they are equal, their order, the operators between them, and their JSON. */

import type { RenderBudget } from "./budget.ts";
import {
  type Value,
  ArrayValue,
  BooleanValue,
  FloatValue,
  IntegerValue,
  floatText,
  isArray,
  isMissing,
  isNull,
  isNumber,
  isObject,
  isString,
  isUndefined,
  string,
  textOf,
  undefinedValue,
} from "./library.ts";
import type { FilterCall, KnownNode, Operator } from "./types.ts";

/** As Python's `==`: numbers and booleans by their value, lists and objects by what they hold. */
export function equals(left: Value, right: Value): boolean {
  if (isArray(left) && isArray(right)) {
    const others = right.value;
    return (
      left.value.length === others.length &&
      left.value.every((item, index) => equals(item, others[index] ?? undefinedValue))
    );
  }
  if (isObject(left) && isObject(right)) {
    const others = right.value;
    return (
      left.value.size === others.size &&
      [...left.value].every(([key, item]) => equals(item, others.get(key) ?? undefinedValue))
    );
  }
  // The library's null holds undefined.
  if (isNull(left) || isNull(right)) return left.type === right.type;
  const [a, b]: unknown[] = [left.value, right.value];
  if (typeof a === "boolean" || typeof b === "boolean")
    return isNumeric(left) && isNumeric(right) && Number(a) === Number(b);
  return a === b;
}

function isNumeric(value: Value): boolean {
  return isNumber(value) || value.type === "BooleanValue";
}

/** What is undefined is in nothing, and nothing in it. */
export function isIn(value: Value, container: Value): boolean {
  if (isUndefined(value) || isUndefined(container)) return false;
  if (isArray(container)) return container.value.some((item) => equals(item, value));
  if (isObject(container)) return container.value.has(value.value as string | number);
  if (isString(container) && isString(value)) return container.value.includes(value.value);
  throw new TypeError(`${value.type} cannot be in ${container.type}`);
}

/** A boolean is a number, as in Python. @throws TypeError it is none */
export function numberOf(value: Value): number {
  if (isNumber(value)) return value.value;
  if (typeof value.value === "boolean") return Number(value.value);
  throw new TypeError(`${value.type} is no number`);
}

/** @throws TypeError the two have no order */
export function order(left: Value, right: Value): number {
  const [a, b] = [left, right].map((value) =>
    isString(value) ? value.value : numberOf(value),
  ) as [number | string, number | string];
  if (typeof a !== typeof b) throw new TypeError(`${left.type} and ${right.type} have no order`);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** All but `and` and `or`, which do not always read both sides. */
export const operators: Readonly<Record<string, Operator>> = {
  "~": (left, right, budget) => string(budget.textOf(left) + budget.textOf(right)),
  "==": (left, right, budget) => new BooleanValue(areEqual(left, right, budget)),
  "!=": (left, right, budget) => new BooleanValue(!areEqual(left, right, budget)),
  in: (left, right, budget) => new BooleanValue(isWithin(left, right, budget)),
  "not in": (left, right, budget) => new BooleanValue(!isWithin(left, right, budget)),
  "<": (left, right, budget) => new BooleanValue(compare(left, right, budget) < 0),
  "<=": (left, right, budget) => new BooleanValue(compare(left, right, budget) <= 0),
  ">": (left, right, budget) => new BooleanValue(compare(left, right, budget) > 0),
  ">=": (left, right, budget) => new BooleanValue(compare(left, right, budget) >= 0),
  "+": add,
  "-": (left, right) => calculate("-", left, right),
  "*": multiply,
  "/": (left, right) => calculate("/", left, right),
  "//": (left, right) => calculate("//", left, right),
  "%": (left, right) => calculate("%", left, right),
  "**": (left, right) => calculate("**", left, right),
};

export function areEqual(left: Value, right: Value, budget: RenderBudget): boolean {
  // What differs in its type, and texts of two lengths, are not read.
  const areRead =
    isString(left) && isString(right)
      ? left.value.length === right.value.length
      : (isArray(left) && isArray(right)) || (isObject(left) && isObject(right));
  if (areRead) budget.walk(left);
  return equals(left, right);
}

function compare(left: Value, right: Value, budget: RenderBudget): number {
  budget.skim(left);
  return order(left, right);
}

function isWithin(value: Value, container: Value, budget: RenderBudget): boolean {
  if (isString(container) && isString(value)) budget.search(container.value, value.value);
  else if (isArray(container)) budget.walk(container);
  return isIn(value, container);
}

/** What is undefined adds nothing to a text, and a number its digits: Python knows neither. */
function add(left: Value, right: Value, budget: RenderBudget): Value {
  if (isArray(left) && isArray(right))
    return budget.made(new ArrayValue([...left.value, ...right.value]));
  if (!isString(left) && !isString(right)) return calculate("+", left, right);
  const other = isString(left) ? right : left;
  if (isArray(other) || isObject(other) || isNull(other))
    throw new TypeError(`cannot add ${other.type} to a string`);
  return string(budget.textOf(left) + budget.textOf(right));
}

function multiply(left: Value, right: Value, budget: RenderBudget): Value {
  const [many, count] = isNumber(left) ? [right, left] : [left, right];
  if (!isNumber(count) || (!isString(many) && !isArray(many))) return calculate("*", left, right);
  const times = Math.max(0, count.value);
  if (isString(many)) {
    budget.write(many.value.length * times);
    return string(many.value.repeat(times));
  }
  budget.step(Math.max(1, many.value.length) * times);
  return new ArrayValue(Array.from({ length: times }, () => many.value).flat());
}

const results: Readonly<Record<string, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b),
  "%": remainder,
  "**": (a, b) => a ** b,
};

/** With the sign of the divisor. */
function remainder(a: number, b: number): number {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return rest < 0 === b < 0 ? rest : rest + b;
}

function calculate(operator: string, left: Value, right: Value): Value {
  const [a, b] = [numberOf(left), numberOf(right)];
  const value = results[operator]!(a, b);
  if (!Number.isFinite(value)) throw new TypeError(`${a} ${operator} ${b} is no number`);
  const isFloat =
    left.type === "FloatValue" ||
    right.type === "FloatValue" ||
    operator === "/" ||
    (operator === "**" && b < 0);
  return isFloat ? new FloatValue(value) : new IntegerValue(value);
}

/** Its arguments are those that transformers gives it. */
export function tojson({ operand, argument, isSet }: FilterCall): Value {
  const [width, separators] = [argument(1, "indent"), argument(2, "separators")];
  const margin =
    width === undefined || isNull(width)
      ? null
      : isString(width)
        ? width.value
        : " ".repeat(numberOf(width));
  const [item = margin === null ? ", " : ",", key = ": "] =
    separators !== undefined && isArray(separators) ? separators.value.map(textOf) : [];
  const style: JsonStyle = {
    margin,
    separators: [item, key],
    isAscii: isSet(0, "ensure_ascii"),
    isSorted: isSet(3, "sort_keys"),
  };
  return string(jsonOf(operand, style));
}

interface JsonStyle {
  /** What a level is indented by. Null: all is one line. */
  margin: string | null;
  separators: readonly [item: string, key: string];
  isAscii: boolean;
  isSorted: boolean;
}

/** @param line what a line begins with, and its end before it @throws TypeError it holds a function */
function jsonOf(value: Value, style: JsonStyle, line = "\n"): string {
  if (isMissing(value)) return "null";
  if (isString(value)) return jsonText(value.value, style);
  if (value.type === "FloatValue") return jsonFloat(value.value as number);
  if (isNumber(value) || value.type === "BooleanValue") return value.toString();
  const isList = isArray(value);
  if (!isList && !isObject(value) && value.type !== "NamespaceValue")
    throw new TypeError(`${value.type} cannot be JSON`);
  const [open, close] = isList ? "[]" : "{}";
  const { margin, separators } = style;
  const inner = margin === null ? "" : line + margin;
  const parts = isList
    ? value.value.map((item) => jsonOf(item, style, inner))
    : entriesInOrder(value.value as ReadonlyMap<string | number, Value>, style).map(
        ([key, item]) => jsonText(String(key), style) + separators[1] + jsonOf(item, style, inner),
      );
  if (parts.length === 0 || margin === null) return open + parts.join(separators[0]) + close;
  return open + inner + parts.join(separators[0] + inner) + line + close;
}

function entriesInOrder(
  entries: ReadonlyMap<string | number, Value>,
  { isSorted }: JsonStyle,
): [string | number, Value][] {
  return isSorted ? [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) : [...entries];
}

function jsonText(text: string, { isAscii }: JsonStyle): string {
  const json = JSON.stringify(text);
  if (!isAscii) return json;
  return json.replaceAll(
    /[\x7F-\uFFFF]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function jsonFloat(value: number): string {
  if (Number.isFinite(value)) return floatText(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

/** A node that is evaluated already. */
export function known(value: Value): KnownNode {
  return { type: "Known", known: value };
}
