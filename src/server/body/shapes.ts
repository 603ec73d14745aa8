/**
 * Shapes of what the endpoints answer with: JSON Schema for /openapi.json, and the type of the values. The fuzz tests hold
 * every answer to its schema, key by key.
 */

import type { Schema } from "./field.ts";

declare const value: unique symbol;

/** A schema of values of this type. */
export interface Shape<Value> extends Schema {
  readonly [value]?: Value;
}

export type ValueOf<Of> = Of extends { readonly [value]?: infer Value } ? Value : never;

type Shapes = Readonly<Record<string, Shape<unknown>>>;
type Required<Of extends Shapes> = { [Name in keyof Of]: ValueOf<Of[Name]> };
type Optional<Of extends Shapes> = { [Name in keyof Of]?: ValueOf<Of[Name]> | undefined };
type AnyObject = { [key: string]: unknown };

export const string: Shape<string> = { type: "string" };
export const boolean: Shape<boolean> = { type: "boolean" };
export const object: Shape<AnyObject> = { type: "object" };
export const whole: Shape<number> = { type: "integer", minimum: 0 };
export const real: Shape<number> = { type: "number" };
export const yes: Shape<true> = { const: true };
export const nothing: Shape<null> = { type: "null" };
export const metadata: Shape<Record<string, string>> = {
  type: "object",
  additionalProperties: string,
  maxProperties: 16,
};

export function record<Of extends Shapes>(
  properties: Of,
  required: string[] = [],
): Shape<Optional<Of>> {
  return { type: "object", properties, required };
}

/** An object with any names. */
export function dictionary<Value>(entry: Shape<Value>): Shape<Record<string, Value>> {
  return { type: "object", additionalProperties: entry };
}

export function list<Value>(items: Shape<Value>, more: Schema = {}): Shape<Value[]> {
  return { type: "array", items, ...more };
}

export function oneOf<Of extends Shape<unknown>[]>(...schemas: Of): Shape<ValueOf<Of[number]>> {
  return { anyOf: schemas };
}

export function nullable<Value>(schema: Shape<Value>): Shape<Value | null> {
  return { anyOf: [schema, { type: "null" }] };
}

/** All properties are always there, but for those of `optional`. */
export function answer<Of extends Shapes, More extends Shapes = Record<never, never>>(
  properties: Of,
  optional?: More,
): Shape<Required<Of> & Optional<More>> {
  return record({ ...properties, ...optional }, Object.keys(properties)) as Shape<never>;
}

export function pageShape(entry: Schema): Schema {
  return answer({
    object: choice("list"),
    data: list(entry),
    first_id: nullable(string),
    last_id: nullable(string),
    has_more: boolean,
  });
}

export function choice<const Value extends string>(...values: Value[]): Shape<Value> {
  return { type: "string", enum: values };
}

const token = {
  token: string,
  logprob: real,
  bytes: list({ type: "integer", minimum: 0, maximum: 255 } as Shape<number>),
};

export const contentToken = answer({ ...token, top_logprobs: list(answer(token)) });

export const inputTokens = answer({
  object: choice("response.input_tokens"),
  input_tokens: whole,
});
