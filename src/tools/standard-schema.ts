/**
 * Standard Schema and its JSON Schema conversion, as zod, valibot and arktype have them
 * (https://standardschema.dev). Structural: none of them is a dependency.
 */

import type { JsonSchema } from "../chat/types.ts";
import { FermataError } from "../errors.ts";

export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): Result<Output> | Promise<Result<Output>>;
    /** Of the schema's input: what a model has to write. */
    readonly jsonSchema?: { input(options: { target: string }): Record<string, unknown> };
  };
}

type Result<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export function isStandardSchema(value: object): value is StandardSchema {
  return "~standard" in value;
}

/** @throws FermataError invalid_value when the library converts only with a package of its own */
export function jsonSchemaOf(schema: StandardSchema): JsonSchema {
  const { vendor, jsonSchema } = schema["~standard"];
  if (jsonSchema === undefined)
    throw new FermataError(
      "invalid_value",
      `This schema of ${vendor} does not convert itself to JSON Schema. Use a version that does, or wrap it (valibot: toStandardJsonSchema of @valibot/to-json-schema).`,
    );
  const { $schema: _, ...rest } = jsonSchema.input({ target: "draft-2020-12" });
  return rest;
}

/** @returns the value as the schema gives it, defaults and transformations applied @throws Error that says what is wrong */
export async function parseWith<Output>(
  schema: StandardSchema<Output>,
  value: unknown,
): Promise<Output> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const problems = result.issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
    return keys.length === 0 ? message : `${keys.join(".")}: ${message}`;
  });
  throw new FermataError("invalid_value", `The arguments do not fit: ${problems.join("; ")}.`);
}
