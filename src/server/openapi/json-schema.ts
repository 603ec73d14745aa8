/** Short words for JSON Schema. */

export type Schema = { [key: string]: unknown };

export const string: Schema = { type: "string" };
export const boolean: Schema = { type: "boolean" };
export const count: Schema = { type: "integer", minimum: 1 };
export const object: Schema = { type: "object" };
export const metadata: Schema = {
  type: "object",
  additionalProperties: string,
  maxProperties: 16,
};

export function number(minimum: number, maximum: number): Schema {
  return { type: "number", minimum, maximum };
}

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
