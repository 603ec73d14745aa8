/** One schema to compile, and what came of it, in a form that crosses threads. */

import { type ErrorCode, FermataError } from "../errors.ts";
import { type CompileOptions, type CompiledSchema, compileSchema } from "./schema/compile.ts";

export interface SchemaJob {
  /** The schema as JSON. */
  text: string;
  options: CompileOptions;
}

export type SchemaOutcome =
  | { compiled: CompiledSchema }
  | { error: { code: ErrorCode; message: string } };

/** Characters of a compiled schema: more would be no grammar that the engine takes. */
const maxCompiled = 2 * 1024 * 1024;

/** @param maxSteps see `compileSchema` */
export function compileJob({ text, options }: SchemaJob, maxSteps?: number): SchemaOutcome {
  try {
    const compiled = compileSchema(JSON.parse(text) as unknown, options, maxSteps);
    const { length } = JSON.stringify(compiled.schema);
    return length > maxCompiled
      ? failed("schema_too_large", "The schema becomes too large. Send a simpler one.")
      : { compiled };
  } catch (error) {
    if (!(error instanceof FermataError)) throw error;
    return failed(error.code, error.message);
  }
}

export function failed(code: ErrorCode, message: string): SchemaOutcome {
  return { error: { code, message } };
}
