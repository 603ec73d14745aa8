/**
 * A request's fields, each declared once: its type and range, its default, what becomes of it. A table of them
 * reads a body, is the request's schema in /openapi.json and a table of docs/parameters.md.
 *
 * This is not zod, valibot or typebox, for four reasons. A refusal names the field at fault and the remedy, and in a
 * union it comes from the branch that was meant; theirs list every branch that failed. Fields that are accepted without
 * effect, or refused with a reason, are most of a table; theirs know such fields only as unknown keys. A type reads into
 * what the engine wants (token ids, a document's form) and warns on the way. And it would be one more dependency at run
 * time in place of 250 lines.
 */

import type { Warn } from "./warnings.ts";
import { FermataError, type ErrorCode } from "../../errors.ts";

/** JSON Schema. */
export type Schema = { [key: string]: unknown };

/** What is known while a body is read. */
export interface Reading {
  warn: Warn;
  /** Of the loaded model; for wires that take token ids. */
  vocabularySize?: number;
}

/** What a value may be. */
export interface Type<Value> {
  /** Of the values that clients should send; `read` may take more. */
  readonly schema: Schema;
  /** What to do about a value that is missing. */
  readonly remedy: string;
  /**
   * @param value there, and null only if a required field was
   * @param path of the value in the body: `messages[0].content`
   * @throws FermataError of status 400 whose `param` is the path of what is wrong
   */
  read(value: unknown, path: string, reading: Reading): Value;
}

/** Does what its documentation says, within `about`. */
export interface Honoured<Value> {
  effect: "honoured";
  type: Type<unknown>;
  about: string;
  isRequired: boolean;
  default?: Value | undefined;
  /** As `Type.read`, of a value that may be absent. */
  read(value: unknown, path: string, reading: Reading): Value;
}

/** Harmless without effect: accepted with one warning, none if a `quiet` value asks for what happens anyway. */
export interface Ignored {
  effect: "ignored";
  about: string;
  isQuiet(value: unknown): boolean;
}

/** A reply without it would not be what was asked for: a 400, but for values that ask for what happens anyway. */
export interface Refused {
  effect: "refused";
  problem: string;
  remedy: string;
  accepts: ((value: unknown) => boolean) | null;
}

export type Field = Honoured<unknown> | Ignored | Refused;
export type FieldTable = Readonly<Record<string, Field>>;

/** What `readFields` gives. */
export type ValuesOf<Table extends FieldTable> = {
  [
    Name in keyof Table as Table[Name] extends Honoured<unknown> ? Name : never
  ]: Table[Name] extends Honoured<infer Value> ? Value : never;
};

/** Absent and null mean the default. */
export function optional<Value>(type: Type<Value>, about?: string): Honoured<Value | undefined>;
export function optional<Value>(
  type: Type<Value>,
  about: string,
  otherwise: NoInfer<Value>,
): Honoured<Value>;
export function optional<Value>(
  type: Type<Value>,
  about = "",
  otherwise?: Value,
): Honoured<Value | undefined> {
  return {
    effect: "honoured",
    type,
    about,
    isRequired: false,
    default: otherwise,
    read: (value, path, reading) => (isAbsent(value) ? otherwise : type.read(value, path, reading)),
  };
}

/** Null is a value of its own; undefined: absent. */
export function nullable<Value>(type: Type<Value>, about = ""): Honoured<Value | null | undefined> {
  return {
    effect: "honoured",
    type: { ...type, schema: { anyOf: [type.schema, { type: "null" }] } },
    about,
    isRequired: false,
    read: (value, path, reading) => (isAbsent(value) ? value : type.read(value, path, reading)),
  };
}

export function required<Value>(type: Type<Value>, about = ""): Honoured<Value> {
  return {
    effect: "honoured",
    type,
    about,
    isRequired: true,
    read(value, path, reading) {
      if (value === undefined) throw fieldError("missing_field", path, "is missing", type.remedy);
      return type.read(value, path, reading);
    },
  };
}

const never = (): boolean => false;

export function ignored(about: string, isQuiet: (value: unknown) => boolean = never): Ignored {
  return { effect: "ignored", about, isQuiet };
}

export function refused(
  problem: string,
  remedy: string,
  accepts: ((value: unknown) => boolean) | null = null,
): Refused {
  return { effect: "refused", problem, remedy, accepts };
}

/**
 * A whole body.
 * @param remedy shows a body
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function readBody<Table extends FieldTable>(
  table: Table,
  body: unknown,
  reading: Reading,
  remedy: string,
): ValuesOf<Table> {
  expectBody(body, remedy);
  checkKeys(table, body, reading.warn);
  return readFields(table, body, reading);
}

/** The honoured fields of a body or of an object within it. `path` is the object's; "" of the body. */
export function readFields<Table extends FieldTable>(
  table: Table,
  body: JsonObject,
  reading: Reading,
  path = "",
): ValuesOf<Table> {
  const values: JsonObject = {};
  for (const [name, field] of Object.entries(table))
    if (field.effect === "honoured")
      values[name] = field.read(body[name], pathOf(path, name), reading);
  return values as ValuesOf<Table>;
}

/** No key passes in silence: known without effect, or unknown, it is warned about or refused. */
export function checkKeys(table: FieldTable, body: JsonObject, warn: Warn, path = ""): void {
  for (const [name, value] of Object.entries(body)) {
    if (isAbsent(value)) continue;
    const field = Object.hasOwn(table, name) ? table[name] : undefined;
    const place = pathOf(path, name);
    const key = withoutIndices(place);
    if (field === undefined) warn(key, "is unknown and ignored");
    else if (field.effect === "ignored" && !field.isQuiet(value)) warn(key, field.about);
    else if (field.effect === "refused" && field.accepts?.(value) !== true)
      throw fieldError("unsupported_value", place, field.problem, field.remedy);
  }
}

/** Warnings name a field without indices, so each kind of field is warned about once. */
export function withoutIndices(path: string): string {
  return path.replaceAll(/\[\d+\]/g, "[]");
}

function pathOf(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** Of the fields that are read, for /openapi.json. */
export function schemaOf(table: FieldTable): Schema {
  const properties: Record<string, Schema> = {};
  for (const [name, field] of Object.entries(table)) {
    if (field.effect === "honoured") properties[name] = honouredSchema(field);
    else if (field.effect === "ignored")
      properties[name] = { description: `Without effect: ${field.about}.` };
  }
  const names = Object.entries(table).flatMap(([name, field]) =>
    field.effect === "honoured" && field.isRequired ? [name] : [],
  );
  return { type: "object", properties, required: names };
}

function honouredSchema({ type, about, default: otherwise }: Honoured<unknown>): Schema {
  return {
    ...type.schema,
    ...(about === "" ? {} : { description: about }),
    ...(isAbsent(otherwise) ? {} : { default: otherwise }),
  };
}

export type JsonObject = { [key: string]: unknown };

/** "field": problem. Remedy. */
export function fieldError(
  code: ErrorCode,
  field: string,
  problem: string,
  remedy: string,
): FermataError {
  return new FermataError(code, `"${field}" ${problem}. ${remedy}.`, { param: field });
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @throws FermataError invalid_json, invalid_type if a request's body is no JSON object; `remedy` shows one */
export function expectBody(body: unknown, remedy: string): asserts body is JsonObject {
  if (isObject(body)) return;
  if (body === undefined) throw fieldError("invalid_json", "body", "is empty", remedy);
  const problem = `must be a JSON object, not ${kindOf(body)}`;
  throw fieldError("invalid_type", "body", problem, remedy);
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** "a string", "an array"…: the kind only, since values may be private. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return value === undefined ? "missing" : `a ${typeof value}`;
}
