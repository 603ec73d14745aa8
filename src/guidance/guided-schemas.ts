/** Schemas of tools and documents, compiled once and kept. */

import { FermataError } from "../errors.ts";
import type { CompileOptions, CompiledSchema } from "./schema/compile.ts";
import { checkSchemaSize } from "./schema/document.ts";
import type { JsonObject } from "./schema/types.ts";
import { type SchemaJob, type SchemaOutcome, compileJob } from "./schema-jobs.ts";
import { SchemaThread } from "./schema-thread.ts";
import { type Validate, compileValidator } from "./validator.ts";

export interface GuidedSchema extends CompiledSchema {
  schema: JsonObject;
  /** Of the original: for what the masks leave open. Null where ajv cannot compile it. */
  validate(): Validate | null;
}

export interface SchemaUse {
  schema: unknown;
  options: CompileOptions;
  /** For messages: `The schema of the tool "x"`. */
  subject: string;
  /** The request's field. */
  field: string;
  strict: boolean;
}

interface KeyedJob extends SchemaJob {
  key: string;
}

/** Characters of schemas that are kept. */
const keptCharacters = 8 * 1024 * 1024;
/** A larger one would block the thread while ajv compiles it. */
const maxValidatedCharacters = 64 * 1024;
/** What of one request is compiled on the spot, because it takes some milliseconds at most. */
const spotCharacters = 16 * 1024;
const spotSteps = 1000;

class SchemaStore {
  /** By content, the least recently used first. */
  readonly #kept = new Map<string, GuidedSchema>();
  readonly #thread = new SchemaThread();
  #characters = 0;

  /** @throws FermataError as `guidedSchemas` */
  async getAll(uses: readonly SchemaUse[]): Promise<GuidedSchema[]> {
    const jobs = uses.map(jobOf);
    const results = new Map<string, GuidedSchema | FermataError>();
    const missing = new Map<string, KeyedJob>();
    for (const job of jobs) {
      const kept = this.#kept.get(job.key);
      if (kept === undefined) missing.set(job.key, job);
      else results.set(job.key, kept);
    }
    await this.#compile([...missing.values()], results);
    return uses.map((use, index) => {
      const { key } = jobs[index]!;
      // After a failure some are missing.
      const result = results.get(key)!;
      if (result instanceof FermataError) throw refusal(use, result);
      this.#keep(key, result);
      if (use.strict) checkStrict(use, result);
      return result;
    });
  }

  /** In their order up to the first failure. Small ones are not worth a change of thread. */
  async #compile(
    jobs: readonly KeyedJob[],
    results: Map<string, GuidedSchema | FermataError>,
  ): Promise<void> {
    const take = (job: KeyedJob, outcome: SchemaOutcome): void => {
      results.set(job.key, resultOf(job, outcome));
    };
    const isSmall = jobs.reduce((sum, { text }) => sum + text.length, 0) <= spotCharacters;
    const large = jobs.filter((job) => {
      const outcome = isSmall ? compileJob(job, spotSteps) : null;
      // With more steps it may be compiled.
      if (outcome === null || isTooLarge(outcome)) return true;
      take(job, outcome);
      return false;
    });
    if (large.length === 0) return;
    const outcomes = await this.#thread.compile(large);
    outcomes.forEach((outcome, index) => take(large[index]!, outcome));
  }

  #keep(key: string, schema: GuidedSchema): void {
    if (this.#kept.delete(key)) this.#characters -= key.length;
    this.#kept.set(key, schema);
    this.#characters += key.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#characters <= keptCharacters || oldest === key) break;
      this.#kept.delete(oldest);
      this.#characters -= oldest.length;
    }
  }
}

const store = new SchemaStore();

/**
 * @returns one for each use
 * @throws FermataError schema_too_large | invalid_schema | unsupported_schema, each naming the field; queue_full
 */
export function guidedSchemas(uses: readonly SchemaUse[]): Promise<GuidedSchema[]> {
  return store.getAll(uses);
}

function jobOf(use: SchemaUse): KeyedJob {
  try {
    // First: text cannot be made of what is nested too deep.
    checkSchemaSize(use.schema);
  } catch (error) {
    if (error instanceof FermataError) throw refusal(use, error);
    throw error;
  }
  const text = JSON.stringify(use.schema) ?? "null";
  const { options } = use;
  return { text, options, key: `${JSON.stringify(options)}${text}` };
}

function isTooLarge(outcome: SchemaOutcome): boolean {
  return "error" in outcome && outcome.error.code === "schema_too_large";
}

function resultOf({ text }: SchemaJob, outcome: SchemaOutcome): GuidedSchema | FermataError {
  if ("error" in outcome) return new FermataError(outcome.error.code, outcome.error.message);
  const { schema, issues, draft } = outcome.compiled;
  if (schema === null)
    return new FermataError("invalid_schema", "The schema allows no value at all.");
  let validate: Validate | null | undefined;
  return {
    schema,
    issues,
    draft,
    validate() {
      validate ??= text.length > maxValidatedCharacters ? null : tryValidator(text, draft);
      return validate;
    },
  };
}

function tryValidator(text: string, draft: CompiledSchema["draft"]): Validate | null {
  try {
    return compileValidator(JSON.parse(text) as JsonObject, draft);
  } catch {
    return null;
  }
}

function refusal({ subject, field }: SchemaUse, cause: FermataError): FermataError {
  return new FermataError(cause.code, `${subject}: ${cause.message}`, { param: field, cause });
}

function checkStrict(use: SchemaUse, { issues: [issue] }: GuidedSchema): void {
  if (issue === undefined) return;
  const { path, keyword, reason } = issue;
  const problem = `At ${path} the keyword "${keyword}" ${reason}, so it cannot be enforced.`;
  const remedy = "Send strict: false to have the value validated afterwards.";
  throw refusal(use, new FermataError("unsupported_schema", `${problem} ${remedy}`));
}
