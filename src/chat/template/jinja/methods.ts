/** Methods that the library lacks, or has with fewer arguments, as Python has them. */

import {
  type Call,
  type Entries,
  type Value,
  ArrayValue,
  BooleanValue,
  FunctionValue,
  IntegerValue,
  NullValue,
  ObjectValue,
  StringValue,
  isArray,
  isMissing,
  isNumber,
  isObject,
  isString,
  keysOf,
  ownOf,
  string,
  textOf,
  undefinedValue,
} from "./library.ts";
import type { BoundMethod, MethodOf } from "./types.ts";
import { numberOf } from "./values.ts";

/** @returns undefined where no value has such a method here */
export function methodNamed(name: string): MethodOf | undefined {
  const ofText = ownOf(stringMethods, name);
  const ofList = ownOf(arrayMethods, name);
  const ofObject = ownOf(objectMethods, name);
  if (ofText === undefined && ofList === undefined && ofObject === undefined) return undefined;
  return (object) => {
    if (isString(object)) return bound(ofText, object.value);
    if (isArray(object)) return bound(ofList, object.value);
    return isObject(object) && !object.value.has(name) ? bound(ofObject, object.value) : undefined;
  };
}

/** What an object's method is, whatever keys it has. */
export function objectMethod(object: Value & { value: Entries }, name: string): Value | undefined {
  return bound(ownOf(objectMethods, name), object.value) ?? object.builtins.get(name);
}

type Method<T> = (self: T, args: Value[]) => Value;

function bound<T>(method: Method<T> | undefined, self: T): BoundMethod | undefined {
  if (method === undefined) return undefined;
  const call: Call = (args) => method(self, args);
  return new FunctionValue(call) as BoundMethod;
}

const stringMethods: Readonly<Record<string, Method<string>>> = {
  format: (self, args) => string(format(self, args)),
  replace: (self, args) => {
    const { places, named } = separate(args);
    const [from, to, count] = [places[0], places[1], places[2] ?? named.get("count")];
    if (from === undefined || to === undefined || !isString(from) || !isString(to))
      throw new TypeError("replace takes two texts");
    return string(replaceIn(self, from.value, to.value, count));
  },
  strip: (self, [characters]) => string(strip(self, characters, "both")),
  lstrip: (self, [characters]) => string(strip(self, characters, "start")),
  rstrip: (self, [characters]) => string(strip(self, characters, "end")),
  removeprefix: (self, [prefix]) =>
    string(self.startsWith(textAt(prefix)) ? self.slice(textAt(prefix).length) : self),
  removesuffix: (self, [suffix]) =>
    string(
      self.endsWith(textAt(suffix)) ? self.slice(0, self.length - textAt(suffix).length) : self,
    ),
  split: (self, args) => new ArrayValue(split(self, args).map(string)),
  rsplit: (self, args) => new ArrayValue(rsplit(self, args).map(string)),
  splitlines: (self, args) => {
    const { places, named } = separate(args);
    const keep = places[0] ?? named.get("keepends");
    return new ArrayValue(splitLines(self, keep?.value === true).map(string));
  },
  partition: (self, [separator]) => partition(self, textAt(separator), "indexOf"),
  rpartition: (self, [separator]) => partition(self, textAt(separator), "lastIndexOf"),
  join: (self, [list]) => string(itemsIn(list).map(textOf).join(self)),
  startswith: (self, [given, ...bounds]) => {
    const { text } = within(self, bounds);
    return new BooleanValue(textsIn(given).some((part) => text.startsWith(part)));
  },
  endswith: (self, [given, ...bounds]) => {
    const { text } = within(self, bounds);
    return new BooleanValue(textsIn(given).some((part) => text.endsWith(part)));
  },
  find: (self, [part, ...bounds]) => {
    const { text, start } = within(self, bounds);
    return placeIn(text, text.indexOf(textAt(part)), start);
  },
  rfind: (self, [part, ...bounds]) => {
    const { text, start } = within(self, bounds);
    return placeIn(text, text.lastIndexOf(textAt(part)), start);
  },
  count: (self, [part, ...bounds]) => {
    const { text } = within(self, bounds);
    const isNothing = textAt(part) === "";
    return new IntegerValue(isNothing ? [...text].length + 1 : text.split(textAt(part)).length - 1);
  },
  isdigit: (self) => new BooleanValue(/^\p{Nd}+$/u.test(self)),
  isalpha: (self) => new BooleanValue(/^\p{L}+$/u.test(self)),
  isalnum: (self) => new BooleanValue(/^[\p{L}\p{N}]+$/u.test(self)),
  isspace: (self) => new BooleanValue(self !== "" && strip(self, undefined, "both") === ""),
  capitalize: (self) => string(capitalize(self)),
  title: (self) => string(self.replaceAll(/\p{L}+/gu, capitalize)),
};

const arrayMethods: Readonly<Record<string, Method<Value[]>>> = {
  append: (self, [item]) => {
    if (item !== undefined) self.push(item);
    return new NullValue(null);
  },
  pop: (self, [index]) => {
    const at = index !== undefined && isNumber(index) ? index.value : self.length - 1;
    return self.splice(at, 1)[0] ?? undefinedValue;
  },
};

const objectMethods: Readonly<Record<string, Method<Entries>>> = {
  get: (self, [key, other]) => {
    if (key === undefined) throw new TypeError("get takes a key");
    return self.get(key.value as string | number) ?? other ?? new NullValue(null);
  },
  update: (self, [other]) => {
    if (other !== undefined && isObject(other))
      for (const [key, value] of other.value) self.set(key, value);
    return new NullValue(null);
  },
};

function textAt(value: Value | undefined): string {
  return value === undefined ? "" : textOf(value);
}

function itemsIn(value: Value | undefined): readonly Value[] {
  if (value === undefined || isMissing(value)) return [];
  if (isArray(value)) return value.value;
  return isObject(value) ? keysOf(value) : charactersOf(textOf(value));
}

/** @param at counts JavaScript's characters @param start of `text`, counts Python's */
function placeIn(text: string, at: number, start: number): Value {
  return new IntegerValue(at < 0 ? -1 : start + Array.from(text.slice(0, at)).length);
}

/** What is searched: all, or from a place on, or up to another. */
function within(
  text: string,
  [first, last]: readonly (Value | undefined)[],
): { text: string; start: number } {
  if (isLeftOut(first) && isLeftOut(last)) return { text, start: 0 };
  const characters = Array.from(text);
  const place = (bound: Value | undefined, other: number): number => {
    const at = isLeftOut(bound) ? other : numberOf(bound);
    return at < 0 ? Math.max(0, characters.length + at) : at;
  };
  const start = place(first, 0);
  return { text: characters.slice(start, place(last, characters.length)).join(""), start };
}

function isLeftOut(value: Value | undefined): value is undefined {
  return value === undefined || isMissing(value);
}

/** A text, or a list of them. */
function textsIn(value: Value | undefined): string[] {
  const values = value !== undefined && isArray(value) ? value.value : [value];
  return values.map((one) => {
    if (one === undefined || !isString(one))
      throw new TypeError("startswith and endswith take a text, or a list of texts");
    return one.value;
  });
}

/** As Python counts them. */
export function charactersOf(text: string): Value[] {
  return Array.from(text, string);
}

/** What Python strips from texts; it keeps the mark at the beginning of a file. */
function isBlank(character: string): boolean {
  if (character.trim() === "") return character !== "\uFEFF";
  return "\x1C\x1D\x1E\x1F\x85".includes(character);
}

export function strip(
  text: string,
  characters: Value | undefined,
  side: "start" | "end" | "both",
): string {
  const stripped =
    characters !== undefined && isString(characters) ? new Set(characters.value) : null;
  const isStripped = (character: string): boolean =>
    stripped === null ? isBlank(character) : stripped.has(character);
  let start = 0;
  let end = text.length;
  for (; side !== "end" && start < end; start += characterAt(text, start).length)
    if (!isStripped(characterAt(text, start))) break;
  for (let last; side !== "start" && start < end; end -= last.length) {
    const isPair = end - start > 1 && text.codePointAt(end - 2)! > 0xff_ff;
    last = text.slice(isPair ? end - 2 : end - 1, end);
    if (!isStripped(last)) break;
  }
  return text.slice(start, end);
}

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at)!);
}

/** @param count of places, from the start; undefined, none or below 0: all */
export function replaceIn(text: string, from: string, to: string, count?: Value): string {
  const most = count === undefined || isMissing(count) ? -1 : numberOf(count);
  let left = most < 0 ? Infinity : most;
  return text.replaceAll(from === "" ? /(?:)/gu : from, (found) => (left-- > 0 ? to : found));
}

export function capitalize(text: string): string {
  const [first = ""] = text;
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
}

function partition(text: string, separator: string, search: "indexOf" | "lastIndexOf"): Value {
  if (separator === "") throw new TypeError("partition takes no empty separator");
  const at = text[search](separator);
  const found = [text.slice(0, at), separator, text.slice(at + separator.length)];
  const whole = search === "indexOf" ? [text, "", ""] : ["", "", text];
  return new ArrayValue((at < 0 ? whole : found).map(string));
}

const lineEnds = "\n\v\f\r\x1C\x1D\x1E\x85\u2028\u2029";

export function splitLines(text: string, keepsEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (!lineEnds.includes(text.charAt(at))) continue;
    const end = text.startsWith("\r\n", at) ? at + 2 : at + 1;
    lines.push(text.slice(start, keepsEnds ? end : at));
    start = end;
    at = end - 1;
  }
  return start < text.length ? [...lines, text.slice(start)] : lines;
}

/** `{}` in order, `{0}` by place, `{name}` by keyword. */
function format(pattern: string, args: Value[]): string {
  const { places, named } = separate(args);
  const texts = places.map(textOf);
  const byName = new Map([...named].map(([name, value]) => [String(name), textOf(value)]));
  let next = 0;
  return pattern.replaceAll(/\{\{|\}\}|\{(\w*)\}/gu, (match, key: string | undefined) => {
    if (key === undefined) return match.charAt(0);
    if (key === "") return texts[next++] ?? "";
    return (/^\d+$/u.test(key) ? texts[Number(key)] : byName.get(key)) ?? "";
  });
}

/** Arguments by place and by keyword. */
export function separate(args: Value[]): { places: Value[]; named: Entries } {
  const last = args.at(-1);
  return last?.type === "KeywordArgumentsValue" && isObject(last)
    ? { places: args.slice(0, -1), named: last.value }
    : { places: args, named: new Map() };
}

interface Splitting {
  /** Null: runs of blanks. */
  separator: string | null;
  /** At most so many pieces are split off. */
  most: number;
}

function splitting(args: Value[]): Splitting {
  const { places, named } = separate(args);
  const separator = places[0] ?? named.get("sep");
  const limit = places[1] ?? named.get("maxsplit");
  const most = limit !== undefined && isNumber(limit) && limit.value >= 0 ? limit.value : Infinity;
  if (separator === undefined || isMissing(separator)) return { separator: null, most };
  if (textOf(separator) === "") throw new TypeError("split takes no empty separator");
  return { separator: textOf(separator), most };
}

function split(text: string, args: Value[]): string[] {
  const { separator, most } = splitting(args);
  if (separator === null) return splitAtBlanks(text, most);
  const pieces = text.split(separator);
  return pieces.length <= most + 1
    ? pieces
    : [...pieces.slice(0, most), pieces.slice(most).join(separator)];
}

function splitAtBlanks(text: string, most: number): string[] {
  const pieces: string[] = [];
  let start = 0;
  const skip = (areBlank: boolean): void => {
    while (start < text.length && isBlank(text.charAt(start)) === areBlank) start += 1;
  };
  for (skip(true); start < text.length && pieces.length < most; skip(true)) {
    const from = start;
    skip(false);
    pieces.push(text.slice(from, start));
  }
  return start < text.length ? [...pieces, text.slice(start)] : pieces;
}

/** From the end: what is left is the first. */
function rsplit(text: string, args: Value[]): string[] {
  const { separator, most } = splitting(args);
  if (separator === null) return rsplitAtBlanks(text, most);
  const pieces: string[] = [];
  let end = text.length;
  while (pieces.length < most) {
    const at = end < separator.length ? -1 : text.lastIndexOf(separator, end - separator.length);
    if (at < 0) break;
    pieces.push(text.slice(at + separator.length, end));
    end = at;
  }
  return [text.slice(0, end), ...pieces.toReversed()];
}

function rsplitAtBlanks(text: string, most: number): string[] {
  const pieces: string[] = [];
  let end = text.length;
  const skip = (areBlank: boolean): void => {
    while (end > 0 && isBlank(text.charAt(end - 1)) === areBlank) end -= 1;
  };
  for (skip(true); end > 0 && pieces.length < most; skip(true)) {
    const to = end;
    skip(false);
    pieces.push(text.slice(end, to));
  }
  return [...(end > 0 ? [text.slice(0, end)] : []), ...pieces.toReversed()];
}

/** An object with numbers for keys, which the library has not. */
export function numberedObject(entries: Entries): Value {
  const keyOf = (key: string | number): Value =>
    typeof key === "number" ? new IntegerValue(key) : new StringValue(key);
  const pairs = (): Value =>
    new ArrayValue([...entries].map(([key, value]) => new ArrayValue([keyOf(key), value])));
  const keys = (): Value => new ArrayValue([...entries.keys()].map(keyOf));
  const builtins = new Map<string, Value>([
    ["items", new FunctionValue(pairs)],
    ["values", new FunctionValue(() => new ArrayValue([...entries.values()]))],
    ["keys", new FunctionValue(keys)],
  ]);
  const object = Object.assign(new ObjectValue(entries), { items: pairs, keys });
  return Object.defineProperty(object, "builtins", { value: builtins });
}
