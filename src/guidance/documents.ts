/** The form that a client wants the answer to have, as the Lark rule `document`. */

import { FermataError } from "../errors.ts";
import { type GuidedSchema, guidedSchema } from "./guided-schemas.ts";
import { documentStyle, jsonValue } from "./json-value.ts";
import { literal, regexTerminal } from "./lark.ts";
import type { EmitBounds } from "./schema/emit.ts";
import { RegexError, parseRegex } from "./schema/regex.ts";
import { writeExact } from "./schema/regex-write.ts";
import type { DocumentFormat } from "./types.ts";

export interface GuidedDocument {
  rules: string;
  /** Of JSON documents. */
  schema: GuidedSchema | null;
  /** Of the request. */
  field: string;
  /** What the engine refuses is an error. */
  isStrict: boolean;
  isRelaxed?: boolean;
}

/** @throws FermataError of status 400 that names the field */
export function guidedDocument(format: DocumentFormat, bounds: EmitBounds): GuidedDocument {
  switch (format.kind) {
    case "json_object":
      return json({ type: "object" }, { ...bounds, field: "response_format", strict: true });
    case "json_schema":
      return json(format.schema, { ...bounds, field: format.field, strict: format.strict });
    case "regex":
      return {
        rules: `document: ${regex(format)}\n`,
        schema: null,
        field: format.field,
        isStrict: true,
      };
    case "choice":
      return {
        rules: `document: ${format.choices.map(literal).join(" | ")}\n`,
        schema: null,
        field: "guided_choice",
        isStrict: true,
      };
    case "grammar":
      return {
        rules: `document: %lark {\n${format.text}\n}\n`,
        schema: null,
        field: format.field,
        isStrict: true,
      };
  }
}

function json(
  original: unknown,
  { field, strict, ...bounds }: EmitBounds & { field: string; strict: boolean },
): GuidedDocument {
  const schema = guidedSchema(
    original,
    { ...bounds, closed: false, objectOnly: false },
    { subject: "The schema of the answer", field, strict },
  );
  return {
    rules: `document: ${jsonValue(schema.schema, documentStyle)}\n`,
    schema,
    field,
    isStrict: strict,
  };
}

function regex({ pattern, field }: Extract<DocumentFormat, { kind: "regex" }>): string {
  try {
    return regexTerminal(writeExact(parseRegex(pattern)));
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    throw new FermataError(
      "invalid_value",
      `"${field}" ${error.message}. Send a regular expression without it.`,
      {
        param: field,
      },
    );
  }
}
