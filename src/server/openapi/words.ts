/**
 * Words for what the endpoints answer with, as JSON Schema, and for what /openapi.json says of a route. The fuzz tests
 * hold every answer to its schema, key by key.
 */

import type { FieldTable, Schema } from "../body/field.ts";

export const string: Schema = { type: "string" };
export const boolean: Schema = { type: "boolean" };
export const object: Schema = { type: "object" };
export const whole: Schema = { type: "integer", minimum: 0 };
export const real: Schema = { type: "number" };
export const yes: Schema = { const: true };
export const metadata: Schema = {
  type: "object",
  additionalProperties: string,
  maxProperties: 16,
};

export function record(properties: Record<string, Schema>, required: string[] = []): Schema {
  return { type: "object", properties, required };
}

export function list(items: Schema, more: Schema = {}): Schema {
  return { type: "array", items, ...more };
}

export function oneOf(...schemas: Schema[]): Schema {
  return { anyOf: schemas };
}

export function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: "null" }] };
}

/** All properties are always there, but for those of `optional`. */
export function answer(
  properties: Record<string, Schema>,
  optional: Record<string, Schema> = {},
): Schema {
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

export function choice(...values: string[]): Schema {
  return { type: "string", enum: values };
}

const token = answer({
  token: string,
  logprob: real,
  bytes: list({ type: "integer", minimum: 0, maximum: 255 }),
});

export const contentToken = answer({
  ...(token["properties"] as Record<string, Schema>),
  top_logprobs: list(token),
});

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
