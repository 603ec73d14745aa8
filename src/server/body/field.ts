/**
 * The fields of requests. Each is declared once, with its type, range, default and effect. A table of fields reads a
 * body, and is the request's schema in /openapi.json and a table in docs/parameters.md.
 *
 * Why not zod, valibot or typebox: a refusal here names the field at fault and the remedy, and in a union only the
 * branch that the client meant; theirs list every branch that failed. Most fields of a table are accepted without effect
 * or refused with a reason; for theirs, such fields are unknown keys. A type here returns what the engine takes (token
 * ids, a document's form) and warns while it reads. And 250 lines replace one more dependency at run time.
 */

import { isDeepStrictEqual } from "node:util";
import { type JsonObject, isJsonObject } from "../../json.ts";
import { finish, type Parts } from "../../parts.ts";
import type { Warn } from "./warnings.ts";
import { FermataError, type ErrorCode } from "../../errors.ts";

/** JSON Schema. */
export type Schema = { [key: string]: unknown };

/** What types may use while they read. */
export interface Reading {
  warn: Warn;
  /** Size of the loaded model's vocabulary; for wires that take token ids. */
  vocabularySize?: number;
}

/** A type of values. */
export interface Type<Value> {
  /** JSON Schema of the values that clients should send; `read` may accept more. */
  readonly schema: Schema;
  /** Remedy in the error for a missing value. */
  readonly remedy: string;
  /**
   * @param value not undefined; null only in a required field
   * @param path of the value in the body: `messages[0].content`
   * @throws FermataError of status 400 whose `param` is the path of the wrong value
   */
  read(value: unknown, path: string, reading: Reading): Value;
}

type ReadInParts<Value> = (value: unknown, path: string, reading: Reading) => Parts<Value>;

/** The field has an effect, which `about` describes. */
export interface Honoured<Value> {
  effect: "honoured";
  type: Type<unknown>;
  about: string;
  isRequired: boolean;
  default?: Value | undefined;
  /** As `Type.read`, but the value may be absent. */
  read(value: unknown, path: string, reading: Reading): Value;
}

/** The field has no effect and is accepted with one warning. `isQuiet` values need no warning: they ask for the default. */
export interface Ignored {
  effect: "ignored";
  about: string;
  isQuiet(value: unknown): boolean;
}

/** The field is not supported and would change the answer: 400, unless `accepts` says that the value is the default. */
export interface Refused {
  effect: "refused";
  problem: string;
  remedy: string;
  accepts: ((value: unknown) => boolean) | null;
}

export type Field = Honoured<unknown> | Ignored | Refused;
export type FieldTable = Readonly<Record<string, Field>>;

/** The result of `readFields`. */
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
  const facts = { effect: "honoured" as const, type, about, isRequired: false, default: otherwise };
  const absent = { read: () => otherwise };
  return readBy(facts, [type], (value) => (isAbsent(value) ? absent : type));
}

/** Null is a value; undefined means absent. */
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
  const facts = { effect: "honoured" as const, type, about, isRequired: true };
  return readBy(facts, [type], (value, path) => {
    if (value !== undefined) return type;
    throw fieldError("missing_field", path, "is missing", type.remedy);
  });
}

interface Reader<Value> {
  read(value: unknown, path: string, reading: Reading): Value;
}

/** Not a property of the reader: a copy whose `read` is another has no parts. */
const readersInParts = new WeakMap<Reader<unknown>, ReadInParts<unknown>>();

/** A reader of what may be long. @param facts what it has beside `read` */
export function inParts<Value, Facts extends object>(
  facts: Facts,
  readInParts: ReadInParts<Value>,
): Facts & Reader<Value> {
  const reader: Facts & Reader<Value> = {
    ...facts,
    read: (value, path, reading) => finish(readInParts(value, path, reading)),
  };
  readersInParts.set(reader, readInParts);
  return reader;
}

/**
 * A reader that leaves the value to one of `others`. It has parts if one of them has: most values are short, and a
 * generator for each reader on the way to them takes longer than to read them.
 * @param facts what it has beside `read`
 * @param pick which of them reads the value, or one that has no parts @throws FermataError of status 400
 */
export function readBy<Value, Facts extends object>(
  facts: Facts,
  others: readonly Reader<unknown>[],
  pick: (value: unknown, path: string) => Reader<Value>,
): Facts & Reader<Value> {
  const reader: Facts & Reader<Value> = {
    ...facts,
    read: (value, path, reading) => pick(value, path).read(value, path, reading),
  };
  if (others.some(hasParts))
    readersInParts.set(reader, (value, path, reading) =>
      partsOf(pick(value, path), value, path, reading),
    );
  return reader;
}

/** Else there is nothing to gain from `partsOf`. */
export function hasParts(reader: Reader<unknown>): boolean {
  return readersInParts.has(reader);
}

/** In one piece where the reader has no parts. */
export function* partsOf<Value>(
  reader: Reader<Value>,
  value: unknown,
  path: string,
  reading: Reading,
): Parts<Value> {
  const readInParts = readersInParts.get(reader);
  return readInParts === undefined
    ? reader.read(value, path, reading)
    : ((yield* readInParts(value, path, reading)) as Value);
}

/**
 * For `refused` and `ignored`, which refuse or warn unless the value is one of these: they ask for nothing, or for what
 * happens anyway. By `===`, -0 is 0; to isDeepStrictEqual it is not.
 */
export function unless(...values: unknown[]): (value: unknown) => boolean {
  return (value) => values.some((one) => one === value || isDeepStrictEqual(one, value));
}

/** For `ignored`: no value needs a warning. */
export function anything(): boolean {
  return true;
}

export function ignored(about: string, isQuiet: (value: unknown) => boolean = unless()): Ignored {
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
 * Reads a whole body.
 * @param remedy shows a valid body
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function readBody<Table extends FieldTable>(
  table: Table,
  body: unknown,
  reading: Reading,
  remedy: string,
): ValuesOf<Table> {
  return finish(readBodyInParts(table, body, reading, remedy));
}

/** As `readBody`, for bodies with long lists. */
export function* readBodyInParts<Table extends FieldTable>(
  table: Table,
  body: unknown,
  reading: Reading,
  remedy: string,
): Parts<ValuesOf<Table>> {
  expectBody(body, remedy);
  checkKeys(table, body, reading.warn);
  return yield* readFieldsInParts(table, body, reading);
}

/** As `readFields`, for bodies with long lists. */
export function* readFieldsInParts<Table extends FieldTable>(
  table: Table,
  body: JsonObject,
  reading: Reading,
  path = "",
): Parts<ValuesOf<Table>> {
  const values: JsonObject = {};
  for (const [name, field] of Object.entries(table))
    if (field.effect === "honoured")
      values[name] = hasParts(field)
        ? yield* partsOf(field, body[name], pathOf(path, name), reading)
        : field.read(body[name], pathOf(path, name), reading);
  return values as ValuesOf<Table>;
}

/** Reads the honoured fields of a body, or of an object in it. @param path of the object; "" for the body */
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

/** Warns about keys that are unknown or have no effect, and refuses those that are not supported. */
export function checkKeys(table: FieldTable, body: JsonObject, warn: Warn, path = ""): void {
  for (const [name, value] of Object.entries(body)) {
    if (isAbsent(value)) continue;
    const field = Object.hasOwn(table, name) ? table[name] : undefined;
    if (field?.effect === "honoured") continue;
    const place = pathOf(path, name);
    if (field === undefined) warn(withoutIndices(place), "is unknown and ignored");
    else if (field.effect === "ignored") {
      if (!field.isQuiet(value)) warn(withoutIndices(place), field.about);
    } else if (field.accepts?.(value) !== true)
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

/** JSON Schema of the fields that have an effect, for /openapi.json. */
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

/** The message reads: "field" problem. Remedy. */
export function fieldError(
  code: ErrorCode,
  field: string,
  problem: string,
  remedy: string,
): FermataError {
  return new FermataError(code, `"${field}" ${problem}. ${remedy}.`, { param: field });
}

/** @throws FermataError invalid_json, invalid_type if a request's body is no JSON object; `remedy` shows one */
export function expectBody(body: unknown, remedy: string): asserts body is JsonObject {
  if (isJsonObject(body)) return;
  if (body === undefined) throw fieldError("invalid_json", "body", "is empty", remedy);
  const problem = `must be a JSON object, not ${kindOf(body)}`;
  throw fieldError("invalid_type", "body", problem, remedy);
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** "a string", "an array"…: only the kind, because values may be private. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return value === undefined ? "missing" : `a ${typeof value}`;
}

/** Whether a request asks for something by one of these fields. */
export function asksFor(table: FieldTable, given: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(table).some((name) => given[name] !== undefined && given[name] !== false);
}
