/** Types of fields: numbers, texts, choices, lists, objects, and unions of them. */

import {
  checkKeys,
  hasParts,
  inParts,
  readBy,
  partsOf,
  readFields,
  schemaOf,
  withoutIndices,
  type FieldTable,
  type Reading,
  type Schema,
  type Type,
  type ValuesOf,
  fieldError,
  isAbsent,
  kindOf,
} from "./field.ts";
import { type JsonObject, isJsonObject } from "../../json.ts";
import type { ErrorCode } from "../../errors.ts";

function mistyped(value: unknown, path: string, wanted: string, remedy: string): Error {
  return fieldError("invalid_type", path, `must be ${wanted}, not ${kindOf(value)}`, remedy);
}

export const boolean: Type<boolean> = {
  schema: { type: "boolean" },
  remedy: "Send true or false without quotes",
  read(value, path) {
    if (typeof value === "boolean") return value;
    throw mistyped(value, path, "a boolean", this.remedy);
  },
};

export function number(min: number, max: number): Type<number> {
  return within("a number", { type: "number", minimum: min, maximum: max }, min, max);
}

export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Type<number> {
  const most = max === Number.MAX_SAFE_INTEGER ? {} : { maximum: max };
  const least = min === Number.MIN_SAFE_INTEGER ? {} : { minimum: min };
  return within("an integer", { type: "integer", ...least, ...most }, min, max);
}

function within(
  wanted: "a number" | "an integer",
  schema: Schema,
  min: number,
  max: number,
): Type<number> {
  const remedy = `Send ${wanted} from ${min} to ${max}, or leave the field out`;
  return {
    schema,
    remedy,
    read(value, path) {
      if (typeof value !== "number") throw mistyped(value, path, wanted, remedy);
      if (wanted === "an integer" && !Number.isInteger(value))
        throw fieldError("invalid_value", path, `must be an integer, not ${value}`, remedy);
      if (value >= min && value <= max) return value;
      const problem = `must be from ${min} to ${max}, not ${value}`;
      throw fieldError("invalid_value", path, problem, remedy);
    },
  };
}

/** @param max characters */
export function text({
  min = 0,
  max = Infinity,
  remedy = max === Infinity
    ? "Send a string or leave the field out"
    : `Send ${min === 0 ? "at most" : `${min} to`} ${max} characters`,
}: { min?: 0 | 1; max?: number; remedy?: string } = {}): Type<string> {
  return {
    schema: {
      type: "string",
      ...(min === 0 ? {} : { minLength: min }),
      ...(max === Infinity ? {} : { maxLength: max }),
    },
    remedy,
    read(value, path) {
      if (typeof value !== "string") throw mistyped(value, path, "a string", remedy);
      if (value.length < min) throw fieldError("invalid_value", path, "is empty", remedy);
      if (value.length <= max) return value;
      throw fieldError("invalid_value", path, `has ${value.length} characters`, remedy);
    },
  };
}

/** @param noun for the error: `is not a known choice` */
export function oneOf<const Choice extends string>(
  choices: readonly Choice[],
  noun = "choice",
): Type<Choice> {
  const known = choices.map((choice) => `"${choice}"`);
  const last = known.length > 1 ? ` or ${known.at(-1)}` : known[0];
  const remedy = `Send ${known.slice(0, -1).join(", ")}${last}`;
  return {
    schema: { type: "string", enum: choices },
    remedy,
    read(value, path) {
      const choice = choices.find((candidate) => candidate === value);
      if (choice !== undefined) return choice;
      const code = typeof value === "string" ? "invalid_value" : "invalid_type";
      throw fieldError(code, path, `is not a known ${noun}`, remedy);
    },
  };
}

export function list<Value>(
  entry: Type<Value>,
  { min = 0, max = Infinity, remedy }: { min?: 0 | 1; max?: number; remedy: string },
): Type<Value[]> {
  const schema = {
    type: "array",
    items: entry.schema,
    ...(min === 0 ? {} : { minItems: min }),
    ...(max === Infinity ? {} : { maxItems: max }),
  };
  return inParts({ schema, remedy }, function* (value, path, reading) {
    if (!Array.isArray(value)) throw mistyped(value, path, "an array", remedy);
    if (value.length < min) throw fieldError("invalid_value", path, "is empty", remedy);
    if (value.length > max)
      throw fieldError("invalid_value", path, `has ${value.length} entries`, remedy);
    const entries: Value[] = [];
    for (const [index, one] of value.entries()) {
      const place = `${path}[${index}]`;
      entries.push(
        hasParts(entry)
          ? yield* partsOf(entry, one, place, reading)
          : entry.read(one, place, reading),
      );
      yield;
    }
    return entries;
  });
}

/** Any object; it is not changed. */
export function record(remedy: string, schema: Schema = {}): Type<JsonObject> {
  return {
    schema: { type: "object", ...schema },
    remedy,
    read(value, path) {
      if (isJsonObject(value)) return value;
      throw mistyped(value, path, "an object", remedy);
    },
  };
}

/** @param others what happens to keys that are not in the table */
export function object<Table extends FieldTable>(
  table: Table,
  remedy: string,
  others: "warned of" | "refused" | "passed over" = "warned of",
): Type<ValuesOf<Table>> {
  const any = record(remedy);
  return {
    schema: schemaOf(table),
    remedy,
    read(value, path, reading) {
      const body = any.read(value, path, reading);
      if (others === "refused") refuseOthers(table, body, path);
      checkKeys(table, body, others === "passed over" ? () => {} : reading.warn, path);
      return readFields(table, body, reading, path);
    },
  };
}

function refuseOthers(table: FieldTable, body: JsonObject, path: string): void {
  const other = Object.keys(body).find((key) => !Object.hasOwn(table, key));
  if (other === undefined) return;
  const remedy = `Send ${Object.keys(table).join(" or ")}`;
  throw fieldError("invalid_value", `${path}.${other.slice(0, 64)}`, "is not known", remedy);
}

type Kind = "string" | "number" | "boolean" | "array" | "object";
type ValueOf<Of> = Of extends Type<infer Value> ? Value : never;

/** A union by the kind of the value, so an error names only the branch that the client meant. */
export function either<Kinds extends Partial<Record<Kind, Type<unknown>>>>(
  kinds: Kinds,
  wanted: string,
  remedy: string,
): Type<ValueOf<Kinds[keyof Kinds]>> {
  type Union = ValueOf<Kinds[keyof Kinds]>;
  const typeOf = (value: unknown, path: string): Type<Union> => {
    const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    const type = (kinds as Record<string, Type<unknown> | undefined>)[kind];
    if (type === undefined) throw mistyped(value, path, wanted, remedy);
    return type as Type<Union>;
  };
  const schema = { anyOf: Object.values(kinds).map((kind) => kind.schema) };
  return readBy({ schema, remedy }, Object.values(kinds), typeOf);
}

/** The type's value, changed by `map`. */
export function mapped<Value, Result>(
  type: Type<Value>,
  map: (value: Value, path: string, reading: Reading) => Result,
): Type<Result> {
  const { schema, remedy } = type;
  if (hasParts(type))
    return inParts({ schema, remedy }, function* (value, path, reading) {
      return map(yield* partsOf(type, value, path, reading), path, reading);
    });
  return {
    schema,
    remedy,
    read: (value, path, reading) => map(type.read(value, path, reading), path, reading),
  };
}

/** Null is refused as a missing value. */
export function notNull<Value>(type: Type<Value>): Type<Value> {
  return readBy(type, [type], (value, path) => {
    if (value !== null) return type;
    throw fieldError("missing_field", path, "must not be null", type.remedy);
  });
}

/** An object with any names and values of one type. @param max entries @param maxName characters of a name */
export function dictionary<Value>(
  type: Type<Value>,
  {
    max = Infinity,
    maxName = Infinity,
    remedy,
  }: { max?: number; maxName?: number; remedy: string },
): Type<Record<string, Value>> {
  const limit = max === Infinity ? {} : { maxProperties: max };
  const any = record(remedy, { additionalProperties: type.schema, ...limit });
  return mapped(any, (value, path, reading) => {
    const entries = Object.entries(value);
    if (entries.length > max)
      throw fieldError("invalid_value", path, `has ${entries.length} entries`, remedy);
    return Object.fromEntries(
      entries.map(([name, one]) => {
        const place = `${path}.${name.slice(0, 64)}`;
        if (name.length > maxName)
          throw fieldError("invalid_value", place, "has a name that is too long", remedy);
        return [name, type.read(one, place, reading)];
      }),
    );
  });
}

/** A kind of object that is refused: the error about its tag. */
interface Unsupported {
  code: ErrorCode;
  problem: string;
  remedy: string;
}

/** A kind of object that reads as null, with this warning. */
interface Skipped {
  warning: string;
  /** For an object without a tag. */
  remedy: string;
}

interface TagRules<Others> {
  remedy: string;
  /** What happens to other kinds. */
  others: Others;
  tag?: string;
  /** The kind of an object without a tag. By default the tag is required. */
  untagged?: (value: JsonObject, path: string) => string;
}

/** Objects that say what they are: in `type`, or in `tag`. */
export function tagged<
  Kinds extends Record<string, Type<unknown> | Unsupported>,
  Others extends Unsupported | Skipped,
>(
  kinds: Kinds,
  { remedy, others, tag = "type", untagged }: TagRules<Others>,
): Type<ValueOf<Kinds[keyof Kinds]> | (Others extends Skipped ? null : never)> {
  type Value = ValueOf<Kinds[keyof Kinds]> | (Others extends Skipped ? null : never);
  const any = record(remedy);
  const required = untagged === undefined ? [tag] : [];
  const taken = Object.entries(kinds).flatMap(([name, kind]) =>
    "read" in kind ? [withTag(tag, name, required, kind.schema)] : [],
  );
  return {
    schema: taken.length === 1 ? taken[0]! : { anyOf: taken },
    remedy,
    read(value, path, reading) {
      const { [tag]: given, ...body } = any.read(value, path, reading);
      const place = `${path}.${tag}`;
      const name = isAbsent(given) && untagged !== undefined ? untagged(body, path) : given;
      if (name === undefined) throw fieldError("missing_field", place, "is missing", others.remedy);
      if (typeof name !== "string") throw mistyped(name, place, "a string", others.remedy);
      const kind = (Object.hasOwn(kinds, name) ? kinds[name] : undefined) ?? others;
      if ("read" in kind) return kind.read(body, path, reading) as Value;
      if ("problem" in kind) throw fieldError(kind.code, place, kind.problem, kind.remedy);
      reading.warn(`${withoutIndices(place)}=${name.slice(0, 40)}`, kind.warning);
      return null as Value;
    },
  };
}

function withTag(
  tag: string,
  name: string,
  requiredTag: readonly string[],
  schema: Schema,
): Schema {
  const { properties = {}, required = [] } = schema as { properties?: object; required?: string[] };
  return {
    ...schema,
    properties: { [tag]: { type: "string", enum: [name] }, ...properties },
    required: [...requiredTag, ...required],
  };
}
