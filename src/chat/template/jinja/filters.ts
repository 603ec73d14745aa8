/** Jinja's filters. The library's own know fewer arguments, fewer types of operands and other texts of numbers. */

import {
  batch,
  dictsort,
  entriesOf,
  extreme,
  groupby,
  itemsOf,
  join,
  map,
  pick,
  reverse,
  slice,
  sort,
  sum,
  unique,
} from "./filters-of-lists.ts";
import {
  type Value,
  ArrayValue,
  FloatValue,
  IntegerValue,
  isMissing,
  isNumber,
  isObject,
  isString,
  isTrue,
  isUndefined,
  ownOf,
  string,
  textOf,
  undefinedValue,
} from "./library.ts";
import { capitalize, replaceIn, splitLines, strip } from "./methods.ts";
import { nearest, printf } from "./printf.ts";
import type { Filter, FilterCall } from "./types.ts";
import { numberOf, tojson } from "./values.ts";

const filters: Readonly<Record<string, Filter>> = {
  abs: ({ operand }) => numeric(Math.abs(numberOf(operand)), operand),
  batch,
  capitalize: ({ operand }) => string(capitalize(textOf(operand))),
  count: length,
  d: defaultOf,
  default: defaultOf,
  dictsort,
  e: escape,
  escape,
  first: ({ operand }) => itemsOf(part(operand, 0, 2), "first")[0] ?? undefinedValue,
  float: toFloat,
  format: ({ operand, args, named, budget }) =>
    string(printf(textOf(operand), args, named, budget)),
  groupby,
  indent,
  int: toInteger,
  items: ({ operand }) =>
    new ArrayValue(isMissing(operand) ? [] : [...entriesOf(operand, "items")]),
  join,
  last: ({ operand }) => itemsOf(part(operand, -2), "last").at(-1) ?? undefinedValue,
  length,
  list: ({ operand }) => new ArrayValue([...itemsOf(operand, "list")]),
  lower: ({ operand }) => string(textOf(operand).toLowerCase()),
  map,
  max: (call) => extreme(call, "max"),
  min: (call) => extreme(call, "min"),
  reject: (call) => pick(call, { wanted: false, byAttribute: false }),
  rejectattr: (call) => pick(call, { wanted: false, byAttribute: true }),
  replace,
  reverse,
  round,
  safe: ({ operand }) => operand,
  select: (call) => pick(call, { wanted: true, byAttribute: false }),
  selectattr: (call) => pick(call, { wanted: true, byAttribute: true }),
  slice,
  sort,
  string: ({ operand }) => string(textOf(operand)),
  sum,
  title: ({ operand }) => string(textOf(operand).replaceAll(/[^-\s({[<]+/gu, capitalize)),
  tojson,
  trim: (call) => string(strip(textOf(call.operand), call.argument(0, "chars"), "both")),
  unique,
  upper: ({ operand }) => string(textOf(operand).toUpperCase()),
  wordcount: ({ operand }) =>
    new IntegerValue([...textOf(operand).matchAll(/[\p{L}\p{N}_]+/gu)].length),
};

/** If there is none, the one returned throws: a template may name what it never applies. */
export function filterNamed(name: string): Filter {
  const none = (): never => {
    throw new TypeError(`there is no filter "${name}"`);
  };
  return ownOf(filters, name) ?? none;
}

export function isFilter(name: string): boolean {
  return Object.hasOwn(filters, name);
}

/** Of a text; all else is left whole. */
function part(value: Value, start: number, end?: number): Value {
  return isString(value) ? string(value.value.slice(start, end)) : value;
}

function numeric(value: number, like: Value): Value {
  return like.type === "FloatValue" ? new FloatValue(value) : new IntegerValue(value);
}

function length({ operand }: FilterCall): Value {
  if (isObject(operand)) return new IntegerValue(operand.value.size);
  const items = isString(operand) ? [...operand.value] : itemsOf(operand, "length");
  return new IntegerValue(items.length);
}

/** For what is undefined; or, with `boolean`, for all that is not true. */
function defaultOf(call: FilterCall): Value {
  const { operand } = call;
  const isWanted = isUndefined(operand) || (call.isSet(1, "boolean") && !isTrue(operand));
  return isWanted ? (call.argument(0, "default_value") ?? string("")) : operand;
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escape({ operand }: FilterCall): Value {
  return string(textOf(operand).replaceAll(/[&<>"']/gu, (character) => escapes[character]!));
}

function toInteger(call: FilterCall): Value {
  const { operand } = call;
  const number = isString(operand) ? numberIn(operand.value) : numberOr(operand);
  if (Number.isFinite(number)) return new IntegerValue(Math.trunc(number));
  return call.argument(0, "default") ?? new IntegerValue(0);
}

function toFloat(call: FilterCall): Value {
  const { operand } = call;
  const number = isString(operand) ? numberIn(operand.value) : numberOr(operand);
  return Number.isNaN(number)
    ? (call.argument(0, "default") ?? new FloatValue(0))
    : new FloatValue(number);
}

/** NaN: it has none. */
function numberIn(text: string): number {
  const number = strip(text, undefined, "both");
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/iu.test(number) ? Number(number) : NaN;
}

function numberOr(value: Value): number {
  return isNumber(value) || value.type === "BooleanValue" ? numberOf(value) : NaN;
}

/** With the ends of lines all alike, as Jinja has them. */
function indent(call: FilterCall): Value {
  const width = call.argument(0, "width") ?? new IntegerValue(4);
  const margin = isString(width) ? width.value : " ".repeat(numberOf(width));
  const isBlankToo = call.isSet(2, "blank");
  const [first = "", ...rest] = splitLines(`${textOf(call.operand)}\n`, false);
  const indented = rest.map((line) => (line === "" && !isBlankToo ? line : margin + line));
  const start = call.isSet(1, "first") ? margin + first : first;
  return string([start, ...indented].join("\n"));
}

function replace(call: FilterCall): Value {
  const [from, to] = [call.argument(0, "old"), call.argument(1, "new")];
  if (from === undefined || to === undefined) throw new TypeError("replace takes two texts");
  const count = call.argument(2, "count");
  return string(replaceIn(textOf(call.operand), textOf(from), textOf(to), count));
}

/** Of two numbers that are as near the even one, as Python has it; only whole numbers stay whole. */
function round({ operand, argument }: FilterCall): Value {
  const value = numberOf(operand);
  const digits = numberOf(argument(0, "precision") ?? new IntegerValue(0));
  const method = textOf(argument(1, "method") ?? string("common"));
  if (method === "common") return numeric(nearest(value, digits), operand);
  if (method !== "ceil" && method !== "floor")
    throw new TypeError('round takes "common", "ceil" or "floor" as method');
  return new FloatValue(Math[method](value * 10 ** digits) / 10 ** digits);
}
