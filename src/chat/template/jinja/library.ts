/**
 * The Jinja library as it is used here, and the text of its values as Python has it. Its own declarations import each
 * other without file endings, which Node's resolution does not follow, and they leave out the runtime's values and the
 * syntax tree.
 */

import * as library from "@huggingface/jinja";
import { isJsonObject, NumberText } from "../../../json.ts";

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

/** Private methods of the interpreter. */
export interface Internals {
  evaluateBlock(statements: Node[], environment: Environment): Value;
  applyFilter(operand: Value, filter: Node, environment: Environment): Value;
  evaluateArguments(
    args: Node[],
    environment: Environment,
  ): [places: Value[], named: ReadonlyMap<string, Value>];
}

export interface Token {
  readonly type: string;
  readonly value: string;
  /** Of a comparison: its left side is one, too. */
  readonly isChained?: boolean;
}

interface Library {
  Environment: new (parent?: Environment) => Environment;
  Interpreter: new (environment: Environment) => Interpreter;
  tokenize(source: string): Token[];
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
const UndefinedValue = classOf<undefined>("undefined", undefined);

export const undefinedValue = new UndefinedValue(undefined);

/** A value of JSON, also in parts of it `NumberText`; the library knows no whole number of more digits than JavaScript's. */
export function toValue(json: unknown): Value {
  if (json instanceof NumberText) return numberIn(json.text);
  if (Array.isArray(json)) return new ArrayValue(json.map(toValue));
  if (typeof json === "string") return new StringValue(json);
  if (!isJsonObject(json)) return new Environment().set("value", json);
  return new ObjectValue(new Map(Object.entries(json).map(([key, item]) => [key, toValue(item)])));
}

function numberIn(text: string): Value {
  if (/[.eE]/u.test(text)) return new FloatValue(Number(text));
  const digits = text === "-0" ? "0" : text;
  return Object.defineProperty(new IntegerValue(Number(text)), "toString", { value: () => digits });
}

export function isString(value: Value): value is Value & { value: string } {
  return value.type === "StringValue";
}

export function isArray(value: Value): value is Value & { value: Value[] } {
  return value.type === "ArrayValue" || value.type === "TupleValue";
}

export function isObject(value: Value): value is Value & { value: Entries } {
  return value.type === "ObjectValue" || value.type === "KeywordArgumentsValue";
}

/** It is no mapping, though it holds what one holds. */
export function isNamespace(value: Value): value is Value & { value: Entries } {
  return value.type === "NamespaceValue";
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

export function pairsOf(value: Value & { value: Entries }): readonly Value[] {
  return (value as unknown as { items(): { value: readonly Value[] } }).items().value;
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
export function reprOf(value: Value): string {
  if (isString(value)) return quote(value.value);
  if (value.type === "BooleanValue") return value.value === true ? "True" : "False";
  if (value.type === "FloatValue") return floatText(value.value as number);
  if (isNull(value)) return "None";
  if (isUndefined(value)) return "Undefined";
  if (isArray(value)) return `[${value.value.map(reprOf).join(", ")}]`;
  if (isObject(value)) {
    const items = [...value.value].map(
      ([key, item]) => `${typeof key === "number" ? key : quote(key)}: ${reprOf(item)}`,
    );
    return `{${items.join(", ")}}`;
  }
  return value.toString();
}

/** With an exponent where Python has one. */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf").toLowerCase();
  const [digits, exponent] = value.toExponential().split("e") as [string, string];
  const power = Math.abs(Number(exponent));
  if (Number(exponent) < -4 || Number(exponent) > 15)
    return `${digits}e${exponent.charAt(0)}${pad(power)}`;
  const text = Object.is(value, -0) ? "-0" : String(value);
  return text.includes(".") ? text : `${text}.0`;
}

const shortEscapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** Characters of private use stay, unlike in Python: guards are some. */
function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll(/[\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}]/gu, (character) => {
    if (character === " ") return character;
    const code = character.codePointAt(0)!.toString(16);
    const length = code.length > 4 ? 8 : code.length > 2 ? 4 : 2;
    const letter = length === 8 ? "U" : length === 4 ? "u" : "x";
    return shortEscapes[character] ?? `\\${letter}${code.padStart(length, "0")}`;
  });
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

/** `constructor` and its like are no names of ours. */
export function ownOf<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
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
