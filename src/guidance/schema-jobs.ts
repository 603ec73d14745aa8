/** What is done with schemas beside the JavaScript thread, in a form that crosses threads. */

import { farNumber, parseJson } from "../json.ts";
import { type ErrorCode, FermataError } from "../errors.ts";
import { RecentMap } from "../recent-map.ts";
import {
  type CompileLimits,
  type CompileOptions,
  type CompiledSchema,
  compileSchema,
} from "./schema/compile.ts";
import { fitsWithoutNulls } from "./refused-nulls.ts";
import { type Fault, type Validate, compileValidator } from "./validator.ts";

export interface CompileJob {
  type: "compile";
  /** The schema as JSON. */
  text: string;
  options: CompileOptions;
}

export interface ValidateJob {
  type: "validate";
  text: string;
  /** What a model wrote. */
  written: string;
}

export type SchemaJob = CompileJob | ValidateJob;

export type SchemaOutcome =
  | { compiled: CompiledSchema }
  /** Null: the value is valid. */
  | { fault: Fault | null }
  | { error: { code: ErrorCode; message: string } };

/** Characters of a compiled schema: more would be no grammar that the engine takes. */
const maxCompiled = 2 * 1024 * 1024;

export function runJob(job: SchemaJob): SchemaOutcome {
  return job.type === "compile" ? compileJob(job) : { fault: validate(job) };
}

export function compileJob({ text, options }: CompileJob, limits?: CompileLimits): SchemaOutcome {
  try {
    const compiled = compileSchema(JSON.parse(text) as unknown, options, limits);
    const { length } = JSON.stringify(compiled.schema);
    return length > maxCompiled
      ? failed("schema_too_large", "The schema becomes too large. Send a simpler one.")
      : { compiled };
  } catch (error) {
    if (!(error instanceof FermataError)) throw error;
    return failed(error.code, error.message);
  }
}

export function failed(
  code: ErrorCode,
  message: string,
): Extract<SchemaOutcome, { error: unknown }> {
  return { error: { code, message } };
}

/** Of the thread. */
const validators = new RecentMap<string, Validate>(100);

function validate({ text, written }: ValidateJob): Fault | null {
  const value = parseJson(written);
  if (value === undefined) return { problem: "is not valid JSON", isCertain: true };
  const far = farNumber(value);
  if (far !== null) return { problem: `${far || "/"} is a number beyond 1.8e308`, isCertain: true };
  const validator = validators.get(text) ?? compileValidator(JSON.parse(text));
  validators.set(text, validator);
  const fault = validator(value);
  const withoutNulls = fault && fitsWithoutNulls(value, fault, validator);
  return withoutNulls === null ? fault : { ...fault!, withoutNulls };
}
