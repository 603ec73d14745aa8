/** Jinja's filters that go through what they are applied to, item by item. */

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
  pairsOf,
  string,
  textOf,
  undefinedValue,
} from "./library.ts";
import { charactersOf } from "./methods.ts";
import type { FilterCall } from "./types.ts";
import { numberOf, order } from "./values.ts";

/** What is missing has none. */
export function itemsOf(operand: Value, name: string): readonly Value[] {
  if (isMissing(operand)) return [];
  if (isArray(operand)) return operand.value;
  if (isString(operand)) return charactersOf(operand.value);
  if (isObject(operand)) return keysOf(operand);
  throw new TypeError(`${name} cannot go through ${operand.type}`);
}

export function entriesOf(operand: Value, name: string): readonly Value[] {
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

export function join(call: FilterCall): Value {
  const between = call.argument(0, "d");
  const attribute = call.argument(1, "attribute");
  if (isString(call.operand)) call.budget.step(call.operand.value.length);
  const items = itemsOf(call.operand, "join").map((item) =>
    textOf(attribute === undefined ? item : attributeOf(item, attribute, call)),
  );
  return string(items.join(between === undefined ? "" : textOf(between)));
}

export function reverse({ operand }: FilterCall): Value {
  const items = itemsOf(operand, "reverse").toReversed();
  return isString(operand) ? string(items.map(textOf).join("")) : new ArrayValue(items);
}

/** Of each item an attribute, or what another filter makes of it. */
export function map(call: FilterCall): Value {
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

/** Letters of both cases are alike, unless the filter says otherwise. @param place of the argument that does */
function comparedAs({ budget, isSet }: FilterCall, place: number): (key: Value) => Value {
  const isSensitive = isSet(place, "case_sensitive");
  return (key) => {
    budget.skim(key);
    return isString(key) && !isSensitive ? string(key.value.toLowerCase()) : key;
  };
}

/** Of what has `attribute`, that is compared. */
function sortKey(
  call: FilterCall,
  at: { sensitive: number; attribute?: number },
): (item: Value) => Value {
  const keyOf = comparedAs(call, at.sensitive);
  const attribute =
    at.attribute === undefined ? undefined : call.argument(at.attribute, "attribute");
  return (item) => {
    const isItem = attribute === undefined || isNull(attribute);
    return keyOf(isItem ? item : attributeOf(item, attribute, call));
  };
}

export function sort(call: FilterCall): Value {
  const keyOf = sortKey(call, { sensitive: 1, attribute: 2 });
  const sign = call.isSet(0, "reverse") ? -1 : 1;
  return sorted(itemsOf(call.operand, "sort"), keyOf, sign);
}

export function dictsort(call: FilterCall): Value {
  const by = call.argument(1, "by");
  const place = by !== undefined && textOf(by) === "value" ? 1 : 0;
  const keyOf = sortKey(call, { sensitive: 0 });
  const sign = call.isSet(2, "reverse") ? -1 : 1;
  const ofPair = (pair: Value): Value => keyOf((pair as Value & { value: Value[] }).value[place]!);
  return sorted(entriesOf(call.operand, "dictsort"), ofPair, sign);
}

function sorted(items: readonly Value[], keyOf: (item: Value) => Value, sign: number): Value {
  return new ArrayValue(inOrder(items, keyOf, sign).map(({ item }) => item));
}

function inOrder(
  items: readonly Value[],
  keyOf: (item: Value) => Value,
  sign = 1,
): { item: Value; key: Value }[] {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }));
  return keyed.sort((a, b) => sign * order(a.key, b.key));
}

export function unique(call: FilterCall): Value {
  const keyOf = sortKey(call, { sensitive: 0, attribute: 1 });
  const seen = new Set<string>();
  const items = itemsOf(call.operand, "unique").filter((item) => {
    const key = keyOf(item);
    const known = isString(key) ? `"${key.value}` : textOf(key);
    return !seen.has(known) && seen.add(known);
  });
  return new ArrayValue(items);
}

export function extreme(call: FilterCall, name: "min" | "max"): Value {
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
export function pick(
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

export function sum(call: FilterCall): Value {
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
export function slice(call: FilterCall): Value {
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
export function batch(call: FilterCall): Value {
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

/** Pairs of a key and its items, in the order of the keys. The parts of a pair have names, too. */
export function groupby(call: FilterCall): Value {
  const attribute = call.argument(0, "attribute");
  if (attribute === undefined) throw new TypeError("groupby takes an attribute");
  const other = call.argument(1, "default");
  const found = (item: Value): Value => {
    const value = attributeOf(item, attribute, call);
    return isUndefined(value) && other !== undefined ? other : value;
  };
  const compared = comparedAs(call, 2);
  const groups: { key: Value; items: Value[] }[] = [];
  for (const { item, key } of inOrder(itemsOf(call.operand, "groupby"), (one) =>
    compared(found(one)),
  )) {
    const last = groups.at(-1);
    if (last !== undefined && order(last.key, key) === 0) last.items.push(item);
    else groups.push({ key, items: [item] });
  }
  return new ArrayValue(
    groups.map(({ items }) => groupOf(found(items[0]!), new ArrayValue(items))),
  );
}

function groupOf(grouper: Value, list: Value): Value {
  const builtins = new Map(Object.entries({ grouper, list }));
  return Object.defineProperty(new ArrayValue([grouper, list]), "builtins", { value: builtins });
}
