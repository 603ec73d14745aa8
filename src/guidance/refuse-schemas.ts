/** Schemas of tools and documents: compiled once and kept, or refused with the field at fault. */

import { type ErrorCode, FermataError } from "../errors.ts";
import { finishInTurns, type Parts } from "../parts.ts";
import { RecentMap } from "../recent-map.ts";
import { anyObject } from "./lark.ts";
import type { CompileOptions, CompiledSchema } from "./schema/compile.ts";
import { checkSchemaSize } from "./schema/read/document.ts";
import type { JsonObject } from "./schema/types.ts";
import {
  type CompileJob,
  type SchemaOutcome,
  type ValidateJob,
  compileJob,
  failed,
} from "./schema-jobs.ts";
import { SchemaThread } from "./schema-thread.ts";
import { type Fault, unvalidated } from "./validator.ts";

export interface GuidedSchema extends CompiledSchema {
  schema: JsonObject;
  /** Nothing is known of it but that its time was over: it is not kept. */
  isTimedOut: boolean;
  /** JSON by the original, for what the masks leave open. @returns what is wrong; null: nothing */
  validate(written: string): Promise<Fault | null>;
}

export interface SchemaUse {
  schema: unknown;
  options: CompileOptions;
  /** For messages: `The schema of the tool "x"`. */
  subject: string;
  /** The request's field. */
  field: string;
  strict: boolean;
  /** The wire has no `strict` for it. */
  alwaysStrict?: boolean | undefined;
  /** A keyword with a value that no draft allows is an error, `strict` or not. */
  refusesMistakes?: true;
}

interface KeyedJob extends CompileJob {
  key: string;
}

/** Characters of schemas that are kept. */
const keptCharacters = 8 * 1024 * 1024;
/** A smaller schema counts as so many: what it becomes takes ten times its characters. */
const leastCharacters = 2048;
/** What is compiled on the spot: a schema so small, so easy, and as long as one request has taken so little time. */
const spot = { characters: 4096, steps: 200, milliseconds: 10 };
/** Of the schemas of one request: several times what one takes at most, which is counted in steps. */
const compileLimitMs = 10_000;
/** ajv's work is not counted. */
const validationLimitMs = 1000;

class SchemaStore {
  /** By content. */
  readonly #kept = new RecentMap<string, GuidedSchema>(keptCharacters, (_, { length }) =>
    Math.max(length, leastCharacters),
  );
  readonly #thread = new SchemaThread(compileLimitMs);
  /** Apart: what waits to be compiled shall not keep a running answer waiting. */
  readonly #validation = new SchemaThread(validationLimitMs);

  /** @throws FermataError as `guidedSchemas` */
  async getAll(uses: readonly SchemaUse[]): Promise<GuidedSchema[]> {
    const jobs = await finishInTurns(jobsOf(uses));
    const results = new Map<string, GuidedSchema | FermataError>();
    const missing = new Map<string, KeyedJob>();
    for (const job of jobs) {
      const kept = this.#kept.get(job.key);
      if (kept === undefined) missing.set(job.key, job);
      else results.set(job.key, kept);
    }
    await this.#compile([...missing.values()], results);
    return uses.map((use, index) => {
      const job = jobs[index]!;
      const result = results.get(job.key)!;
      if (result instanceof FermataError) throw refusal(use, result);
      if (!result.isTimedOut) this.#kept.set(job.key, result);
      if (use.refusesMistakes) checkMistakes(use, result);
      if (use.strict) checkStrict(use, result);
      return result;
    });
  }

  /** Small ones are not worth a change of thread. */
  async #compile(
    jobs: readonly KeyedJob[],
    results: Map<string, GuidedSchema | FermataError>,
  ): Promise<void> {
    const take = (job: KeyedJob, outcome: SchemaOutcome): void => {
      results.set(job.key, this.#resultOf(job, outcome));
    };
    const deadline = performance.now() + spot.milliseconds;
    const large = jobs.filter((job) => {
      if (job.text.length > spot.characters || performance.now() > deadline) return true;
      const outcome = compileJob(job, { maxSteps: spot.steps });
      // With more steps it may be compiled.
      if ("error" in outcome && isTooDear(outcome.error.code)) return true;
      take(job, outcome);
      return false;
    });
    if (large.length === 0) return;
    const outcomes = await this.#thread.run(large).catch((error: unknown) => {
      if (!(error instanceof FermataError)) throw error;
      return large.map(() => failed("schema_timeout", error.message));
    });
    outcomes.forEach((outcome, index) => take(large[index]!, outcome));
  }

  #resultOf({ text, options }: KeyedJob, outcome: SchemaOutcome): GuidedSchema | FermataError {
    const compiled = compiledOf(outcome, options);
    if (compiled instanceof FermataError) return compiled;
    const { schema } = compiled;
    if (schema === null)
      return new FermataError("invalid_schema", "The schema allows no value at all.");
    return {
      ...compiled,
      schema,
      isTimedOut: "error" in outcome && outcome.error.code === "schema_timeout",
      validate: (written) => this.#validate({ type: "validate", text, written }),
    };
  }

  async #validate(job: ValidateJob): Promise<Fault | null> {
    const outcome = await this.#validation.run([job]).then(
      ([only]) => only!,
      (error: Error) => failed("queue_full", error.message),
    );
    if ("fault" in outcome) return outcome.fault;
    return unvalidated("error" in outcome ? outcome.error.message : "");
  }
}

const store = new SchemaStore();

/**
 * @returns one for each use
 * @throws FermataError schema_too_large | invalid_schema | unsupported_schema | schema_timeout, each naming the field
 */
export function guidedSchemas(uses: readonly SchemaUse[]): Promise<GuidedSchema[]> {
  return store.getAll(uses);
}

function* jobsOf(uses: readonly SchemaUse[]): Parts<KeyedJob[]> {
  const jobs: KeyedJob[] = [];
  for (const use of uses) {
    jobs.push(jobOf(use));
    yield;
  }
  return jobs;
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
  const key = `${JSON.stringify(options)}${text}`;
  return { type: "compile", text, options, key };
}

/** What takes too much is left open as a whole. */
function compiledOf(
  outcome: SchemaOutcome,
  { objectOnly }: CompileOptions,
): CompiledSchema | FermataError {
  if ("compiled" in outcome) return outcome.compiled;
  const { code, message } = (outcome as Extract<SchemaOutcome, { error: unknown }>).error;
  if (!isTooDear(code)) return new FermataError(code, message);
  const reason =
    code === "schema_timeout"
      ? "was not worked out in time"
      : "belongs to a schema that is too large";
  const issues = [{ path: "#", keyword: "$schema", reason }];
  return { schema: objectOnly ? anyObject : {}, issues };
}

function isTooDear(code: ErrorCode): boolean {
  return code === "schema_too_large" || code === "schema_timeout";
}

function refusal({ subject, field }: SchemaUse, cause: FermataError): FermataError {
  return new FermataError(cause.code, `${subject}: ${cause.message}`, { param: field, cause });
}

function checkMistakes(use: SchemaUse, { issues }: GuidedSchema): void {
  const mistake = issues.find(({ isMistake }) => isMistake);
  if (mistake === undefined) return;
  const { path, keyword, reason } = mistake;
  const message = `At ${path} the keyword "${keyword}" ${reason}. Send a value that JSON Schema allows there.`;
  throw refusal(use, new FermataError("invalid_schema", message));
}

function checkStrict(use: SchemaUse, { issues: [issue], isTimedOut }: GuidedSchema): void {
  if (issue === undefined) return;
  const { path, keyword, reason } = issue;
  const problem = `At ${path} the keyword "${keyword}" ${reason}, so it cannot be enforced.`;
  const remedies = [
    ...(isTimedOut ? ["Try again when the server is less busy."] : []),
    use.alwaysStrict === true
      ? "Send a schema without it."
      : "Send strict: false to have the value validated afterwards.",
  ];
  const code = isTimedOut ? "schema_timeout" : "unsupported_schema";
  throw refusal(use, new FermataError(code, [problem, ...remedies].join(" ")));
}
