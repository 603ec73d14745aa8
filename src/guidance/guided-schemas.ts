/** Schemas of tools and documents, compiled once and kept. */

import { FermataError } from "../errors.ts";
import { type CompileOptions, type CompiledSchema, compileSchema } from "./schema/compile.ts";
import type { JsonObject, SchemaIssue } from "./schema/types.ts";
import { type Validate, compileValidator } from "./validator.ts";

export interface GuidedSchema extends CompiledSchema {
  schema: JsonObject;
  /** Of the original: for what the masks leave open. Null where ajv cannot compile it. */
  validate(): Validate | null;
}

/** Characters of schemas that are kept. */
const keptCharacters = 8 * 1024 * 1024;
/** A larger one would block the thread while ajv compiles it. */
const maxValidatedCharacters = 64 * 1024;

class SchemaCache {
  readonly #kept = new Map<string, GuidedSchema>();
  #characters = 0;

  /** @throws FermataError schema_too_large | invalid_schema */
  get(original: unknown, options: CompileOptions): GuidedSchema {
    const text = JSON.stringify(original);
    const key = `${JSON.stringify(options)}${text}`;
    let entry = this.#kept.get(key);
    if (entry === undefined) {
      entry = guided(original, text.length, compileSchema(original, options));
      this.#characters += key.length;
    } else this.#kept.delete(key);
    this.#kept.set(key, entry);
    for (const oldest of this.#kept.keys()) {
      if (this.#characters <= keptCharacters || oldest === key) break;
      this.#kept.delete(oldest);
      this.#characters -= oldest.length;
    }
    return entry;
  }
}

function guided(original: unknown, length: number, compiled: CompiledSchema): GuidedSchema {
  const { schema } = compiled;
  if (schema === null)
    throw new FermataError("invalid_schema", "The schema allows no value at all.");
  let validate: Validate | null | undefined;
  return {
    ...compiled,
    schema,
    validate() {
      validate ??= length > maxValidatedCharacters ? null : tryValidator(original, compiled);
      return validate;
    },
  };
}

function tryValidator(original: unknown, { draft }: CompiledSchema): Validate | null {
  try {
    return compileValidator(original as JsonObject, draft);
  } catch {
    return null;
  }
}

const cache = new SchemaCache();

export interface SchemaUse {
  /** For messages: `The schema of the tool "x"`. */
  subject: string;
  /** The request's field. */
  field: string;
  strict: boolean;
}

/** @throws FermataError schema_too_large | invalid_schema | unsupported_schema, each naming the field */
export function guidedSchema(
  original: unknown,
  options: CompileOptions,
  { subject, field, strict }: SchemaUse,
): GuidedSchema {
  try {
    const guidedOne = cache.get(original, options);
    const [issue] = guidedOne.issues;
    if (strict && issue !== undefined)
      throw new FermataError(
        "unsupported_schema",
        `${describe(issue)} Send strict: false to have the value validated afterwards.`,
      );
    return guidedOne;
  } catch (error) {
    if (!(error instanceof FermataError)) throw error;
    throw new FermataError(error.code, `${subject}: ${error.message}`, {
      param: field,
      cause: error,
    });
  }
}

function describe({ path, keyword, reason }: SchemaIssue): string {
  return `At ${path} the keyword "${keyword}" ${reason}, so it cannot be enforced.`;
}
