/** Short words for JSON Schema. */

import type { Schema } from "../body/field.ts";

export const string: Schema = { type: "string" };
export const boolean: Schema = { type: "boolean" };
export const object: Schema = { type: "object" };
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

export function constant(value: string): Schema {
  return { type: "string", enum: [value] };
}

export function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: "null" }] };
}
