/** Filters that the library lacks, or knows with fewer arguments, as Jinja has them. */

import {
  type Value,
  ArrayValue,
  FloatValue,
  IntegerValue,
  NullValue,
  UndefinedValue,
  isArray,
  isMissing,
  isNull,
  isNumber,
  isObject,
  isString,
  isTrue,
  isUndefined,
  keysOf,
  string,
  textOf,
} from "./library.ts";

export interface FilterCall {
  operand: Value;
  args: readonly Value[];
  named: ReadonlyMap<string, Value>;
  /** Asks a test, which the template may name as it runs, of a value. */
  holds(name: string, value: Value, args: readonly Value[]): boolean;
  /** Work in proportion to what an argument says. */
  step(count: number): void;
}

export type Filter = (call: FilterCall) => Value;

/** By name. For all others the library's own filter stands, or one of the plain ones. */
export const ownFilters: Readonly<Record<string, Filter>> = {
  string: ({ operand }) => string(textOf(operand)),
  sum,
  slice,
  wordcount: ({ operand }) =>
    new IntegerValue([...textOf(operand).matchAll(/[\p{L}\p{N}_]+/gu)].length),
  select: (call) => pick(call, { wanted: true, byAttribute: false }),
  reject: (call) => pick(call, { wanted: false, byAttribute: false }),
  selectattr: (call) => pick(call, { wanted: true, byAttribute: true }),
  rejectattr: (call) => pick(call, { wanted: false, byAttribute: true }),
};

/** Of a filter that is written without arguments, what it does to such values; to others, what the library does. */
export interface PlainFilter {
  missing?: () => Value;
  array?: (items: Value[]) => Value;
  text?: (text: string) => Value;
}

export const plainFilters: Readonly<Record<string, PlainFilter>> = {
  list: {
    missing: () => new ArrayValue([]),
    text: (text) => new ArrayValue([...text].map(string)),
  },
  items: { missing: () => new ArrayValue([]) },
  length: { missing: () => new IntegerValue(0) },
  join: { missing: () => string(""), array: (items) => string(items.map(textOf).join("")) },
  trim: { missing: () => string("") },
  first: {
    missing: () => new UndefinedValue(undefined),
    text: (text) => string([...text][0] ?? ""),
  },
  last: {
    missing: () => new UndefinedValue(undefined),
    text: (text) => string([...text].at(-1) ?? ""),
  },
  lower: { missing: () => string("") },
  upper: { missing: () => string("") },
  min: { array: (items) => extreme(items, -1) },
  max: { array: (items) => extreme(items, 1) },
};

/** @param sign of the difference from what is passed over */
function extreme(items: Value[], sign: 1 | -1): Value {
  const better = (a: Value, b: Value): boolean => {
    const [x, y] = [a.value, b.value] as [number | string, number | string];
    return sign * (x < y ? -1 : x > y ? 1 : 0) > 0;
  };
  return items.reduce<Value>(
    (best, item) => (isUndefined(best) || better(item, best) ? item : best),
    new UndefinedValue(undefined),
  );
}

const others: ReadonlySet<string> = new Set(
  "abs capitalize default dictsort first float indent int items join last length list lower map max min replace reverse safe sort title tojson trim unique upper".split(
    " ",
  ),
);

export function isFilter(name: string): boolean {
  return others.has(name) || Object.hasOwn(ownFilters, name);
}

function itemsOf(operand: Value, name: string): readonly Value[] {
  if (isMissing(operand)) return [];
  if (isArray(operand)) return operand.value;
  if (isString(operand)) return [...operand.value].map(string);
  if (isObject(operand)) return keysOf(operand);
  throw new TypeError(`${name} cannot go through ${operand.type}`);
}

/** `a.b.0`, or a number. */
function attributeOf(value: Value, path: Value): Value {
  let at = value;
  for (const part of textOf(path).split(".")) {
    const isIndex = /^\d+$/u.test(part);
    const found = isObject(at)
      ? (at.value.get(part) ?? (isIndex ? at.value.get(Number(part)) : undefined))
      : isArray(at) && isIndex
        ? at.value[Number(part)]
        : undefined;
    if (found === undefined) return new UndefinedValue(undefined);
    at = found;
  }
  return at;
}

/** The items of which a test holds, or does not. Without a test, whether they are true. */
function pick(
  call: FilterCall,
  { wanted, byAttribute }: { wanted: boolean; byAttribute: boolean },
): Value {
  const attribute = byAttribute ? call.args[0] : undefined;
  if (byAttribute && attribute === undefined) throw new TypeError("an attribute is missing");
  const [test, ...args] = call.args.slice(byAttribute ? 1 : 0);
  const items = itemsOf(call.operand, "select").filter((item) => {
    const value = attribute === undefined ? item : attributeOf(item, attribute);
    const isMet = test === undefined ? isTrue(value) : call.holds(textOf(test), value, args);
    return isMet === wanted;
  });
  return new ArrayValue(items);
}

function sum({ operand, args, named }: FilterCall): Value {
  const attribute = args[0] ?? named.get("attribute") ?? new NullValue(null);
  const start = args[1] ?? named.get("start") ?? new IntegerValue(0);
  const values = itemsOf(operand, "sum").map((item) =>
    isNull(attribute) ? item : attributeOf(item, attribute),
  );
  if (isArray(start)) return new ArrayValue([start, ...values].flatMap(listOf));
  const total = [start, ...values].reduce((added, value) => added + numberOf(value), 0);
  const isFloat = [start, ...values].some(({ type }) => type === "FloatValue");
  return isFloat ? new FloatValue(total) : new IntegerValue(total);
}

function listOf(value: Value): readonly Value[] {
  if (!isArray(value)) throw new TypeError(`sum cannot add ${value.type} to a list`);
  return value.value;
}

/** A boolean is a number, as in Python. @throws TypeError it is none */
export function numberOf(value: Value): number {
  if (isNumber(value)) return value.value;
  if (typeof value.value === "boolean") return Number(value.value);
  throw new TypeError(`${value.type} is no number`);
}

/** So many lists of items that follow each other, the first ones an item longer where there is a rest. */
function slice({ operand, args, named, step }: FilterCall): Value {
  const count = args[0] ?? named.get("slices");
  const fill = args[1] ?? named.get("fill_with") ?? new NullValue(null);
  if (count === undefined || !isNumber(count) || count.value < 1)
    throw new TypeError("slice takes the number of slices");
  step(count.value);
  const items = itemsOf(operand, "slice");
  const least = Math.floor(items.length / count.value);
  const longer = items.length % count.value;
  let at = 0;
  const slices = Array.from({ length: count.value }, (_, index) => {
    const part = items.slice(at, (at += least + (index < longer ? 1 : 0)));
    return new ArrayValue(index < longer || isNull(fill) ? part : [...part, fill]);
  });
  return new ArrayValue(slices);
}
