/**
 * JSON Schema validation of what a model wrote, for what no mask enforces. ajv judges. Two things stand around it:
 * `checkable.ts` takes from a schema what ajv would throw at, as clients send schemas with errors in them, and
 * `bounded-regex.ts` matches patterns, which JavaScript's own engine may do in exponential time.
 */

import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { boundedRegex } from "./bounded-regex.ts";
import { type Checkable, checkablePart } from "./checkable.ts";
import { ownFormats } from "./schema/decide/formats.ts";
import { isMultiple } from "./schema/decide/numbers.ts";
import { SchemaDocument } from "./schema/read/document.ts";

/** What is wrong with a value, for the model and the log. */
export interface Fault {
  problem: string;
  /** False: a part of the schema could not be applied, and the value may fit all the same. */
  isCertain: boolean;
  /** JSON pointer into the value. */
  place?: string;
  /** The value as JSON without properties that are null where the schema wants something else or nothing: that fits. */
  withoutNulls?: string;
}

/** @returns null when the value is valid */
export type Validate = (value: unknown) => Fault | null;

const options: Options = {
  strict: false,
  allErrors: false,
  validateSchema: false,
  logger: false,
  validateFormats: true,
  // A property may be called as what every object inherits.
  ownProperties: true,
  // ajv's optimizer takes many times as long as the rest, and gains nothing in a validator that is rarely used.
  code: { regExp: Object.assign(boundedRegex, { code: "boundedRegex" }), optimize: false },
};

/** Compiles; what it takes grows with the schema, so bound that first. */
export function compileValidator(schema: unknown): Validate {
  try {
    const document = new SchemaDocument(schema);
    const part = checkablePart(document);
    const ajv = judgeOf(document);
    formats.default(ajv, { keywords: false });
    ajv.removeKeyword("multipleOf");
    ajv.addKeyword({
      keyword: "multipleOf",
      type: "number",
      validate: (of: number, value: number) => isMultiple(value, of),
      error: { message: ({ schema }) => `must be multiple of ${String(schema)}` },
    });
    for (const [name, { pattern }] of ownFormats)
      ajv.addFormat(name, new RegExp(`^(?:${pattern})$`, "u"));
    return validateBy(ajv.compile(part.schema), part);
  } catch (error) {
    return () => unvalidated(messageOf(error));
  }
}

function judgeOf({ draft, isOf2019 }: SchemaDocument): Ajv {
  if (draft === "draft-07") return new Ajv({ ...options, ignoreKeywordsWithRef: true });
  return isOf2019 ? new Ajv2019(options) : new Ajv2020(options);
}

function validateBy(validate: ValidateFunction, { left, refusesValid }: Checkable): Validate {
  const [first] = left;
  const open =
    first === undefined
      ? null
      : unvalidated(`at ${first.path} the keyword "${first.keyword}" ${first.reason}`);
  return (value) => {
    try {
      if (validate(value) || refusesValid) return open;
    } catch (error) {
      // A pattern without an end, references in a circle, or a fault in the code that ajv wrote: nothing is known of the value.
      return unvalidated(messageOf(error));
    }
    const [error] = validate.errors ?? [];
    const problem =
      error === undefined
        ? "is not valid"
        : `${error.instancePath || "/"} ${error.message ?? "is not valid"}`;
    return { problem, isCertain: true, place: error?.instancePath ?? "" };
  };
}

export function unvalidated(reason: string): Fault {
  return { problem: `was not validated: ${reason}`, isCertain: false };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
