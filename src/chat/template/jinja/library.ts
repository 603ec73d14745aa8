/**
 * The Jinja library as it is used here. Its own declarations import each other without file endings, which
 * Node's resolution does not follow, and they leave out the runtime's values and the syntax tree.
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
  readonly parent?: Environment;
  /** Declares a variable, its value converted from JavaScript's. */
  set(name: string, value: unknown): Value;
}

export interface Interpreter {
  run(program: Node): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
}

interface Library {
  Environment: new () => Environment;
  Interpreter: new (environment: Environment) => Interpreter;
  tokenize(source: string, options: { lstrip_blocks: boolean; trim_blocks: boolean }): unknown;
  parse(tokens: unknown): Node;
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
export const BooleanValue = classOf("boolean", true);
export const NullValue = classOf("null", null);
export const ArrayValue = classOf<Value[]>("array", []);
export const ObjectValue = classOf<Entries>("object", {} as unknown as Entries);
export const FunctionValue = classOf<Call>("function", (() => null) as unknown as Call);
export const UndefinedValue = classOf<undefined>("undefined", undefined);

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
