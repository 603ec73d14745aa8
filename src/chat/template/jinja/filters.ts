/** Jinja's filters. The library's own know fewer arguments, fewer types of operands and other texts of numbers. */

import {
  type Value,
  ArrayValue,
  FloatValue,
  IntegerValue,
  NullValue,
  isArray,
  isMissing,
  isNull,
  isNumber,
  isObject,
  isString,
  isTrue,
  isUndefined,
  keysOf,
  ownOf,
  pairsOf,
  string,
  textOf,
  undefinedValue,
} from "./library.ts";
import { capitalize, charactersOf, replaceIn, splitLines, strip } from "./methods.ts";
import type { Filter, FilterCall } from "./types.ts";
import { numberOf, order, tojson } from "./values.ts";

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

/** What is missing has none. */
function itemsOf(operand: Value, name: string): readonly Value[] {
  if (isMissing(operand)) return [];
  if (isArray(operand)) return operand.value;
  if (isString(operand)) return charactersOf(operand.value);
  if (isObject(operand)) return keysOf(operand);
  throw new TypeError(`${name} cannot go through ${operand.type}`);
}

function entriesOf(operand: Value, name: string): readonly Value[] {
  if (isObject(operand)) return pairsOf(operand);
  throw new TypeError(`${name} takes a mapping, not ${operand.type}`);
}

/** `a.b.0`, or a number. */
function attributeOf(value: Value, path: Value, { budget }: FilterCall): Value {
  budget.skim(path);
  let at = value;
  for (const part of textOf(path).split(".")) {
    const isIndex = /^\d+$/u.test(part);
    const found =
      isObject(at) || at.type === "NamespaceValue"
        ? entryOf(at as Value & { value: ReadonlyMap<unknown, Value> }, part)
        : isArray(at) && isIndex
          ? at.value[Number(part)]
          : undefined;
    if (found === undefined) return undefinedValue;
    at = found;
  }
  return at;
}

function entryOf(
  { value }: { value: ReadonlyMap<unknown, Value> },
  key: string,
): Value | undefined {
  return value.get(key) ?? (/^\d+$/u.test(key) ? value.get(Number(key)) : undefined);
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

function join(call: FilterCall): Value {
  const between = call.argument(0, "d");
  const attribute = call.argument(1, "attribute");
  if (isString(call.operand)) call.budget.step(call.operand.value.length);
  const items = itemsOf(call.operand, "join").map((item) =>
    textOf(attribute === undefined ? item : attributeOf(item, attribute, call)),
  );
  return string(items.join(between === undefined ? "" : textOf(between)));
}

function replace(call: FilterCall): Value {
  const [from, to] = [call.argument(0, "old"), call.argument(1, "new")];
  if (from === undefined || to === undefined) throw new TypeError("replace takes two texts");
  const count = call.argument(2, "count");
  return string(replaceIn(textOf(call.operand), textOf(from), textOf(to), count));
}

function reverse({ operand }: FilterCall): Value {
  const items = itemsOf(operand, "reverse").toReversed();
  return isString(operand) ? string(items.map(textOf).join("")) : new ArrayValue(items);
}

/** Of each item an attribute, or what another filter makes of it. */
function map(call: FilterCall): Value {
  const {
    operand,
    args: [name, ...args],
    named,
    filter,
  } = call;
  const items = itemsOf(operand, "map");
  const attribute = named.get("attribute");
  if (name !== undefined) {
    const apply = filter(textOf(name));
    return new ArrayValue(items.map((item) => apply(item, { args, named })));
  }
  if (attribute === undefined) throw new TypeError("map takes a filter or an attribute");
  const found = items.map((item) => attributeOf(item, attribute, call));
  const other = named.get("default");
  return new ArrayValue(found.map((value) => (isUndefined(value) && other ? other : value)));
}

/** Letters of both cases are alike, unless the filter says otherwise; of what has `attribute`, that is compared. */
function sortKey(
  call: FilterCall,
  at: { sensitive: number; attribute?: number },
): (item: Value) => Value {
  const isSensitive = call.isSet(at.sensitive, "case_sensitive");
  const attribute =
    at.attribute === undefined ? undefined : call.argument(at.attribute, "attribute");
  return (item) => {
    const isItem = attribute === undefined || isNull(attribute);
    const key = isItem ? item : attributeOf(item, attribute, call);
    call.budget.skim(key);
    return isString(key) && !isSensitive ? string(key.value.toLowerCase()) : key;
  };
}

function sort(call: FilterCall): Value {
  const keyOf = sortKey(call, { sensitive: 1, attribute: 2 });
  const sign = call.isSet(0, "reverse") ? -1 : 1;
  return sorted(itemsOf(call.operand, "sort"), keyOf, sign);
}

function dictsort(call: FilterCall): Value {
  const by = call.argument(1, "by");
  const place = by !== undefined && textOf(by) === "value" ? 1 : 0;
  const keyOf = sortKey(call, { sensitive: 0 });
  const sign = call.isSet(2, "reverse") ? -1 : 1;
  const ofPair = (pair: Value): Value => keyOf((pair as Value & { value: Value[] }).value[place]!);
  return sorted(entriesOf(call.operand, "dictsort"), ofPair, sign);
}

function sorted(items: readonly Value[], keyOf: (item: Value) => Value, sign: number): Value {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }));
  keyed.sort((a, b) => sign * order(a.key, b.key));
  return new ArrayValue(keyed.map(({ item }) => item));
}

function unique(call: FilterCall): Value {
  const keyOf = sortKey(call, { sensitive: 0, attribute: 1 });
  const seen = new Set<string>();
  const items = itemsOf(call.operand, "unique").filter((item) => {
    const key = keyOf(item);
    const known = isString(key) ? `"${key.value}` : textOf(key);
    return !seen.has(known) && seen.add(known);
  });
  return new ArrayValue(items);
}

function extreme(call: FilterCall, name: "min" | "max"): Value {
  const keyOf = sortKey(call, { sensitive: 0, attribute: 1 });
  const sign = name === "min" ? -1 : 1;
  let best: { item: Value; key: Value } | undefined;
  for (const item of itemsOf(call.operand, name)) {
    const key = keyOf(item);
    if (best === undefined || sign * order(key, best.key) > 0) best = { item, key };
  }
  return best?.item ?? undefinedValue;
}

/** The items of which a test holds, or does not. Without a test, whether they are true. */
function pick(
  call: FilterCall,
  { wanted, byAttribute }: { wanted: boolean; byAttribute: boolean },
): Value {
  const attribute = byAttribute ? call.args[0] : undefined;
  if (byAttribute && attribute === undefined) throw new TypeError("an attribute is missing");
  const [test, ...args] = call.args.slice(byAttribute ? 1 : 0);
  const holds = test === undefined ? isTrue : call.test(textOf(test));
  const items = itemsOf(call.operand, "select").filter((item) => {
    const value = attribute === undefined ? item : attributeOf(item, attribute, call);
    return holds(value, args) === wanted;
  });
  return new ArrayValue(items);
}

function sum(call: FilterCall): Value {
  const attribute = call.argument(0, "attribute") ?? new NullValue(null);
  const start = call.argument(1, "start") ?? new IntegerValue(0);
  const values = itemsOf(call.operand, "sum").map((item) =>
    isNull(attribute) ? item : attributeOf(item, attribute, call),
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

/** So many lists of items that follow each other, the first ones an item longer where there is a rest. */
function slice(call: FilterCall): Value {
  const { count, fill, items } = portions(call, "slices");
  const least = Math.floor(items.length / count);
  const longer = items.length % count;
  let at = 0;
  const slices = Array.from({ length: count }, (_, index) => {
    const part = items.slice(at, (at += least + (index < longer ? 1 : 0)));
    return new ArrayValue(index < longer || isNull(fill) ? part : [...part, fill]);
  });
  return new ArrayValue(slices);
}

/** Lists of so many items. */
function batch(call: FilterCall): Value {
  const { count, fill, items } = portions(call, "linecount");
  const batches: Value[] = [];
  for (let at = 0; at < items.length; at += count) {
    const part = items.slice(at, at + count);
    const missing = isNull(fill) ? 0 : count - part.length;
    batches.push(new ArrayValue([...part, ...Array.from({ length: missing }, () => fill)]));
  }
  return new ArrayValue(batches);
}

function portions(
  call: FilterCall,
  name: string,
): { count: number; fill: Value; items: readonly Value[] } {
  const count = call.argument(0, name);
  const fill = call.argument(1, "fill_with") ?? new NullValue(null);
  if (count === undefined || !isNumber(count) || count.value < 1)
    throw new TypeError(`it takes a number as ${name}`);
  call.budget.step(count.value);
  return { count: count.value, fill, items: itemsOf(call.operand, name) };
}
