/**
 * The Jinja library as it is used here, and what its values lack of Python: texts, equality, methods. Its own
 * declarations import each other without file endings, which Node's resolution does not follow, and they leave out the
 * runtime's values and the syntax tree.
 */

import * as library from "@huggingface/jinja";

export interface Node {
  readonly type: string;
}

export interface Value {
  readonly type: string;
  readonly value: unknown;
  readonly builtins: ReadonlyMap<string, Value>;
  toString(): string;
}

export interface Environment {
  readonly variables: ReadonlyMap<string, Value>;
  readonly tests: ReadonlyMap<string, (value: Value) => boolean>;
  readonly parent?: Environment;
  /** Declares a variable, its value converted from JavaScript's. */
  set(name: string, value: unknown): Value;
  setVariable(name: string, value: Value): Value;
}

export interface Interpreter {
  run(program: Node): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
}

export interface Token {
  readonly type: string;
  readonly value: string;
}

interface Library {
  Environment: new (parent?: Environment) => Environment;
  Interpreter: new (environment: Environment) => Interpreter;
  tokenize(source: string, options: { lstrip_blocks: boolean; trim_blocks: boolean }): Token[];
  parse(tokens: readonly Token[]): Node;
}

export const { Environment, Interpreter, tokenize, parse } = library as unknown as Library;

export type Call = (args: Value[], scope: Environment) => Value;

/** An object's entries. Keys are numbers where the template wrote numbers. */
export type Entries = Map<string | number, Value>;

interface ValueClass<T> {
  new (value: T): Value;
}

/** It exports no classes of its runtime's values, so those of values it makes are taken. */
const maker = new Environment();

function classOf<T>(name: string, sample: T): ValueClass<T> {
  return maker.set(name, sample).constructor as ValueClass<T>;
}

export const StringValue = classOf("string", "");
export const IntegerValue = classOf("integer", 1);
export const FloatValue = classOf("float", 1.5);
export const BooleanValue = classOf("boolean", true);
export const NullValue = classOf("null", null);
export const ArrayValue = classOf<Value[]>("array", []);
export const ObjectValue = classOf<Entries>("object", {} as unknown as Entries);
export const FunctionValue = classOf<Call>("function", (() => null) as unknown as Call);
export const UndefinedValue = classOf<undefined>("undefined", undefined);

const undefinedValue = new UndefinedValue(undefined);

export function isString(value: Value): value is Value & { value: string } {
  return value.type === "StringValue";
}

export function isArray(value: Value): value is Value & { value: Value[] } {
  return value.type === "ArrayValue" || value.type === "TupleValue";
}

export function isObject(value: Value): value is Value & { value: Entries } {
  return value.type === "ObjectValue" || value.type === "KeywordArgumentsValue";
}

export function isUndefined(value: Value): boolean {
  return value.type === "UndefinedValue";
}

/** Undefined or null. */
export function isMissing(value: Value): boolean {
  return isUndefined(value) || isNull(value);
}

export function isNull(value: Value): boolean {
  return value.type === "NullValue";
}

export function isNumber(value: Value): value is Value & { value: number } {
  return value.type === "IntegerValue" || value.type === "FloatValue";
}

export function isFunction(value: Value): value is Value & { value: Call } {
  return value.type === "FunctionValue";
}

export function isTrue(value: Value): boolean {
  return (value as Value & { __bool__(): Value }).__bool__().value === true;
}

export function keysOf(value: Value & { value: Entries }): readonly Value[] {
  return (value as unknown as { keys(): { value: readonly Value[] } }).keys().value;
}

export function string(text: string): Value {
  return new StringValue(text);
}

/** What Python's `str` makes of it. */
export function textOf(value: Value): string {
  if (isUndefined(value)) return "";
  return isString(value) ? value.value : reprOf(value);
}

/** What Python's `repr` makes of it. */
function reprOf(value: Value): string {
  if (isString(value)) return quote(value.value);
  if (value.type === "BooleanValue") return value.value === true ? "True" : "False";
  if (isNull(value)) return "None";
  if (isArray(value)) return `[${value.value.map(reprOf).join(", ")}]`;
  if (isObject(value)) {
    const items = [...value.value].map(
      ([key, item]) => `${typeof key === "number" ? key : quote(key)}: ${reprOf(item)}`,
    );
    return `{${items.join(", ")}}`;
  }
  return value.toString();
}

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t");
  return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark;
}

/** The library looks for a name by catching an exception, which costs most where names are missing. */
export function lookUp(name: string, environment: Environment): Value {
  for (let scope: Environment | undefined = environment; scope; scope = scope.parent) {
    const value = scope.variables.get(name);
    if (value !== undefined) return value;
  }
  return undefinedValue;
}

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
  const [a, b]: unknown[] = [left.value, right.value];
  if (typeof a === "boolean" || typeof b === "boolean")
    return typeof a !== "string" && typeof b !== "string" && Number(a ?? NaN) === Number(b ?? NaN);
  return a === b;
}

/** @returns undefined where the library's own answer stands */
export function methodOf(object: Value, name: string): Value | undefined {
  if (isString(object)) return bound(ownOf(stringMethods, name), object.value);
  if (isArray(object)) return bound(ownOf(arrayMethods, name), object.value);
  return isObject(object) && name !== "" && !object.value.has(name)
    ? bound(ownOf(objectMethods, name), object.value)
    : undefined;
}

/** `constructor` and its like are no names of ours. */
export function ownOf<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

type Method<T> = (self: T, args: Value[]) => Value;

function bound<T>(method: Method<T> | undefined, self: T): Value | undefined {
  if (method === undefined) return undefined;
  const call: Call = (args) => method(self, args);
  return new FunctionValue(call);
}

const stringMethods: Readonly<Record<string, Method<string>>> = {
  format: (self, args) => string(format(self, args)),
  strip: (self, args) => string(strip(self, args, "both")),
  lstrip: (self, args) => string(strip(self, args, "start")),
  rstrip: (self, args) => string(strip(self, args, "end")),
  removeprefix: (self, [prefix]) =>
    string(self.startsWith(textAt(prefix)) ? self.slice(textAt(prefix).length) : self),
  removesuffix: (self, [suffix]) =>
    string(self.endsWith(textAt(suffix)) ? self.slice(0, -textAt(suffix).length) : self),
  rsplit: (self, args) => new ArrayValue(rsplit(self, args).map(string)),
  find: (self, [part]) => new IntegerValue(self.indexOf(textAt(part))),
  count: (self, [part]) => new IntegerValue(self.split(textAt(part)).length - 1),
};

const arrayMethods: Readonly<Record<string, Method<Value[]>>> = {
  append: (self, [item]) => {
    if (item !== undefined) self.push(item);
    return new NullValue(null);
  },
  pop: (self, [index]) => {
    const at = index !== undefined && isNumber(index) ? index.value : self.length - 1;
    return self.splice(at, 1)[0] ?? new UndefinedValue(undefined);
  },
};

const objectMethods: Readonly<Record<string, Method<Entries>>> = {
  update: (self, [other]) => {
    if (other !== undefined && isObject(other))
      for (const [key, value] of other.value) self.set(key, value);
    return new NullValue(null);
  },
};

function textAt(value: Value | undefined): string {
  return value === undefined ? "" : textOf(value);
}

/** `{}` in order, `{0}` by place, `{name}` by keyword. */
function format(pattern: string, args: Value[]): string {
  const last = args.at(-1);
  const named = last?.type === "KeywordArgumentsValue" && isObject(last) ? last.value : new Map();
  let next = 0;
  return pattern.replaceAll(/\{\{|\}\}|\{(\w*)\}/gu, (match, key: string | undefined) => {
    if (key === undefined) return match.charAt(0);
    if (key === "") return textAt(args[next++]);
    return textAt(/^\d+$/u.test(key) ? args[Number(key)] : named.get(key));
  });
}

function strip(text: string, [characters]: Value[], side: "start" | "end" | "both"): string {
  const isStripped =
    characters !== undefined && isString(characters)
      ? (character: string) => characters.value.includes(character)
      : (character: string) => character.trim() === "";
  let start = 0;
  let end = text.length;
  while (side !== "end" && start < end && isStripped(text.charAt(start))) start += 1;
  while (side !== "start" && end > start && isStripped(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** From the end: at most so many pieces are split off, and what is left is the first. */
function rsplit(text: string, args: Value[]): string[] {
  const last = args.at(-1);
  const named = last?.type === "KeywordArgumentsValue" && isObject(last) ? last.value : null;
  const [first, second] = named === null ? args : args.slice(0, -1);
  const separator = first ?? named?.get("sep");
  const limit = second ?? named?.get("maxsplit");
  const most = limit !== undefined && isNumber(limit) && limit.value >= 0 ? limit.value : Infinity;
  if (separator === undefined || isMissing(separator)) return rsplitAtBlanks(text, most);
  const between = textOf(separator);
  if (between === "") throw new TypeError("rsplit takes no empty separator");
  const pieces: string[] = [];
  let end = text.length;
  while (pieces.length < most) {
    const at = end < between.length ? -1 : text.lastIndexOf(between, end - between.length);
    if (at < 0) break;
    pieces.push(text.slice(at + between.length, end));
    end = at;
  }
  return [text.slice(0, end), ...pieces.toReversed()];
}

function rsplitAtBlanks(text: string, most: number): string[] {
  const pieces: string[] = [];
  const isBlank = (at: number): boolean => text.charAt(at).trim() === "";
  let end = text.length;
  const skipBlanks = (): void => {
    while (end > 0 && isBlank(end - 1)) end -= 1;
  };
  for (skipBlanks(); end > 0 && pieces.length < most; skipBlanks()) {
    let start = end;
    while (start > 0 && !isBlank(start - 1)) start -= 1;
    pieces.push(text.slice(start, end));
    end = start;
  }
  return [...(end > 0 ? [text.slice(0, end)] : []), ...pieces.toReversed()];
}

/** An object with numbers for keys, which the library has not. */
export function numberedObject(entries: Entries): Value {
  const keyOf = (key: string | number): Value =>
    typeof key === "number" ? new IntegerValue(key) : new StringValue(key);
  const pairs = (): Value =>
    new ArrayValue([...entries].map(([key, value]) => new ArrayValue([keyOf(key), value])));
  const sorted = (): Value => {
    const order = [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return new ArrayValue(order.map(([key, value]) => new ArrayValue([keyOf(key), value])));
  };
  const builtins = new Map<string, Value>([
    ["items", new FunctionValue(pairs)],
    ["dictsort", new FunctionValue(sorted)],
    ["values", new FunctionValue(() => new ArrayValue([...entries.values()]))],
    ["keys", new FunctionValue(() => new ArrayValue([...entries.keys()].map(keyOf)))],
    [
      "get",
      new FunctionValue(
        ([key, other]) =>
          entries.get(key?.value as string | number) ?? other ?? new NullValue(null),
      ),
    ],
  ]);
  const object = new ObjectValue(entries);
  const own = {
    items: pairs,
    keys: () => new ArrayValue([...entries.keys()].map(keyOf)),
  };
  return Object.defineProperty(Object.assign(object, own), "builtins", { value: builtins });
}

/** C's `strftime` in English and local time, as far as templates use it. */
export function strftime(format: string, date: Date): string {
  return format.replaceAll(/%(-?)([a-zA-Z%])/gu, (directive, dash: string, letter: string) => {
    const text = directives[letter]?.(date);
    if (text === undefined) return directive;
    return dash === "" ? text : text.replace(/^0+(?=.)/u, "");
  });
}

const directives: Readonly<Record<string, (date: Date) => string>> = {
  "%": () => "%",
  Y: (date) => String(date.getFullYear()),
  y: (date) => pad(date.getFullYear() % 100),
  m: (date) => pad(date.getMonth() + 1),
  d: (date) => pad(date.getDate()),
  H: (date) => pad(date.getHours()),
  I: (date) => pad(date.getHours() % 12 || 12),
  M: (date) => pad(date.getMinutes()),
  S: (date) => pad(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  B: (date) => monthOf(date),
  b: (date) => monthOf(date).slice(0, 3),
  A: (date) => dayOf(date),
  a: (date) => dayOf(date).slice(0, 3),
  F: (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`,
  T: (date) => `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`,
};

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

// By themselves: the first use of Intl loads its data, and a start would wait for it.
const months =
  "January February March April May June July August September October November December".split(
    " ",
  );
const days = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

function monthOf(date: Date): string {
  return months[date.getMonth()]!;
}

function dayOf(date: Date): string {
  return days[date.getDay()]!;
}
