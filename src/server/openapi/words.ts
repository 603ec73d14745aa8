/**
 * Words for what the endpoints answer with, as JSON Schema, and for what /openapi.json says of a route. The fuzz tests
 * hold every answer to its schema, key by key, and the type of an answer is that of its schema.
 */

import type { FieldTable, JsonObject, Schema } from "../body/field.ts";

declare const value: unique symbol;

/** A schema of such values. Only the compiler knows of which. */
type Typed<Value> = Schema & { readonly [value]?: Value };

/** What a schema describes. */
export type Of<S> = S extends Typed<infer Value> ? Value : never;

type Properties = Record<string, Typed<unknown>>;
type Members<All, Optional> = { [Name in keyof All]: Of<All[Name]> } & {
  [Name in keyof Optional]?: Of<Optional[Name]>;
};

export const string: Typed<string> = { type: "string" };
export const boolean: Typed<boolean> = { type: "boolean" };
export const object: Typed<JsonObject> = { type: "object" };
export const whole: Typed<number> = { type: "integer", minimum: 0 };
export const real: Typed<number> = { type: "number" };
export const yes: Typed<true> = { const: true };
export const nothing: Typed<null> = { type: "null" };
export const metadata: Typed<Record<string, string>> = {
  ...recordOf(string),
  maxProperties: 16,
};

export function record(properties: Properties, required: string[] = []): Schema {
  return { type: "object", properties, required };
}

export function recordOf<Value>(values: Typed<Value>): Typed<Record<string, Value>> {
  return { type: "object", additionalProperties: values };
}

export function list<Item>(items: Typed<Item>): Typed<Item[]> {
  return { type: "array", items };
}

export function oneOf<All extends readonly Typed<unknown>[]>(
  ...schemas: All
): Typed<Of<All[number]>> {
  return { anyOf: schemas };
}

export function nullable<Value>(schema: Typed<Value>): Typed<Value | null> {
  return { anyOf: [schema, nothing] };
}

/** All properties are always there, but for those of `optional`. */
export function answer<All extends Properties, Optional extends Properties = Record<never, never>>(
  properties: All,
  optional?: Optional,
): Typed<Members<All, Optional>> {
  return record({ ...properties, ...optional }, Object.keys(properties));
}

export function pageOf(entry: Schema): Schema {
  return answer({
    object: choice("list"),
    data: list(entry),
    first_id: nullable(string),
    last_id: nullable(string),
    has_more: boolean,
  });
}

export function choice<const Value extends string>(...values: Value[]): Typed<Value> {
  return { type: "string", enum: values };
}

const byte: Typed<number> = { type: "integer", minimum: 0, maximum: 255 };

const token = {
  /** Bytes that are no UTF-8 by themselves show as U+FFFD. */
  token: string,
  logprob: real,
  bytes: list(byte),
};

export const contentToken = answer({ ...token, top_logprobs: list(answer(token)) });

export const inputTokens = answer({
  object: choice("response.input_tokens"),
  input_tokens: whole,
});

/** One route, as /openapi.json tells it. */
export interface Operation {
  summary: string;
  /** Fields of the request's body. None: no body is read. */
  request?: FieldTable;
  /** A request that succeeds. */
  example?: object;
  /** Of the path's query, all optional. */
  query?: Record<string, Schema>;
  /** Of a success. Default 200. */
  status?: 101 | 200 | 201 | 202 | 204;
  /** Body of a success that is not streamed; null: not JSON, or none. */
  answer: Schema | null;
  /** May answer with server-sent events. Those that no other server's documentation has stand here, by type. */
  streams?: true | Record<string, Schema>;
  /** May answer with lines of JSON, each of them as the body of an answer that is not streamed. */
  lines?: true;
}
