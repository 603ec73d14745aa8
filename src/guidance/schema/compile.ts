/** JSON Schema to what the mask engine compiles, with every keyword that it cannot hold named. */

import { SchemaDocument } from "./document.ts";
import { emitSchema } from "./emit.ts";
import { States } from "./states.ts";
import type { JsonObject, SchemaIssue } from "./types.ts";

export interface CompiledSchema {
  /** In the mask engine's keywords. Null: no value satisfies the schema. */
  schema: JsonObject | null;
  /** Empty: masks hold all of it. Else `schema` allows more than the original. */
  issues: SchemaIssue[];
}

export interface CompileOptions {
  /** Objects with named properties have no others unless the schema says so. */
  closed: boolean;
  /** Only objects are values, whatever the schema says: a call's arguments. */
  objectOnly: boolean;
}

/** Subschemas looked at, probes included. */
const mostSteps = 100_000;

/** @throws FermataError schema_too_large (more than `maxSteps` too) | invalid_schema */
export function compileSchema(
  value: unknown,
  options: CompileOptions,
  maxSteps: number = mostSteps,
): CompiledSchema {
  const document = new SchemaDocument(value);
  const states = new States(document, { ...options, maxSteps });
  return {
    schema: emitSchema(states),
    issues: [...states.issues.values()],
  };
}
