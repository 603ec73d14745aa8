/** JSON Schema validation of what a model wrote, for constraints that no mask holds. */

import { createContext, runInContext } from "node:vm";
import { Ajv, type AnySchema, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { matches, maxMatchLength } from "./schema/regex-match.ts";
import { type Regex, parseRegex } from "./schema/regex.ts";
import type { Draft } from "./schema/types.ts";

/** @returns null when the value is valid, else what is wrong, for the model and the log */
export type Validate = (value: unknown) => string | null;

const options: Options = {
  strict: false,
  allErrors: false,
  validateSchema: false,
  addUsedSchema: false,
  logger: false,
  validateFormats: true,
  // Patterns come from clients and texts from a model: no match may take exponential time.
  // ajv's optimizer takes many times as long as the rest, and gains nothing in a validator that is rarely used.
  code: { regExp: Object.assign(boundedRegex, { code: "boundedRegex" }), optimize: false },
};

/**
 * Compiles; what it takes grows with the schema, so bound that first.
 * @throws whatever ajv says of a schema that is not one
 */
export function compileValidator(schema: AnySchema, draft: Draft): Validate {
  const ajv = draft === "draft-07" ? new Ajv(options) : new Ajv2020(options);
  formats.default(ajv);
  const validate: ValidateFunction = ajv.compile(withoutDialect(schema));
  return (value) => {
    if (validate(value)) return null;
    const [error] = validate.errors ?? [];
    if (error === undefined) return "is not valid";
    return `${error.instancePath || "/"} ${error.message ?? "is not valid"}`;
  };
}

/** The draft is known; ajv would look for the dialect's own schema. */
function withoutDialect(schema: AnySchema): AnySchema {
  if (typeof schema !== "object" || !("$schema" in schema)) return schema;
  const { $schema: _, ...rest } = schema;
  return rest;
}

const matchTimeoutMs = 50;

function boundedRegex(pattern: string, flags: string): RegExp {
  const regex = parsed(pattern);
  const test = (text: string): boolean => {
    if (regex !== null && text.length <= maxMatchLength) return matches(regex, text);
    try {
      const context = createContext({ pattern, flags, text });
      const code = "new RegExp(pattern, flags).test(text)";
      return runInContext(code, context, { timeout: matchTimeoutMs }) as boolean;
    } catch {
      return false;
    }
  };
  // ajv only tests.
  return { test } as RegExp;
}

function parsed(pattern: string): Regex | null {
  try {
    return parseRegex(pattern);
  } catch {
    return null;
  }
}
