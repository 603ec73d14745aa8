/** The form that a client wants the answer to have: the Lark rule `document`, or a grammar in GBNF. */

import type { GrammarSource } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import type { GuidedSchema, SchemaUse } from "./refuse-schemas.ts";
import { documentStyle, jsonValue, literal, regexTerminal } from "./lark.ts";
import { RegexError, parseRegex } from "./schema/regex/parse.ts";
import { writeExact } from "./schema/regex/write.ts";
import type { DocumentFormat, ReasoningMarkers } from "./types.ts";

export interface GuidedDocument {
  rules: string;
  /** Of JSON documents. */
  schema: GuidedSchema | null;
  /** Of the request. */
  field: string;
  /** What the engine refuses is an error. */
  isStrict: boolean;
  /** Else masks allow any JSON. */
  isEnforced: boolean;
}

export function documentRules({ rules, isEnforced }: GuidedDocument): string {
  return isEnforced ? rules : `document: ${jsonValue({}, documentStyle)}\n`;
}

/** What a document's schema is compiled from; null where it has none. */
export function documentSchema(format: DocumentFormat): SchemaUse | null {
  const options = { closed: false, objectOnly: false };
  const subject = "The schema of the answer";
  switch (format.kind) {
    case "json_object":
      return {
        schema: { type: "object" },
        options,
        subject,
        field: "response_format",
        strict: true,
      };
    case "json_schema": {
      const { schema, field, strict, alwaysStrict } = format;
      return { schema, options, subject, field, strict, alwaysStrict };
    }
    default:
      return null;
  }
}

/**
 * @param schema of formats that have one
 * @throws FermataError of status 400 that names the field
 */
export function guidedDocument(
  format: DocumentFormat,
  schema: GuidedSchema | null,
): GuidedDocument {
  const { rule, field } = ruleOf(format, schema);
  const isStrict = format.kind !== "json_schema" || format.strict;
  return { rules: `document: ${rule}\n`, schema, field, isStrict, isEnforced: true };
}

function ruleOf(
  format: DocumentFormat,
  schema: GuidedSchema | null,
): { rule: string; field: string } {
  switch (format.kind) {
    case "json_object":
      return { rule: jsonValue(schema?.schema ?? {}, documentStyle), field: "response_format" };
    case "json_schema":
      return { rule: jsonValue(schema?.schema ?? {}, documentStyle), field: format.field };
    case "regex":
      return { rule: regex(format), field: format.field };
    case "choice":
      return { rule: format.choices.map(literal).join(" | "), field: "guided_choice" };
    case "grammar":
      return { rule: `%lark {\n${format.text}\n}`, field: format.field };
  }
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

const userRoot = "fermata-user-root";

/** As the field tells them apart: GBNF defines its rules with `::=`. */
export function isGbnf(text: string): boolean {
  return text.includes("::=");
}

/** The client's grammar, after reasoning where there is some. */
export function gbnfDocument(
  { text }: Extract<DocumentFormat, { kind: "grammar" }>,
  markers: ReasoningMarkers | null,
  reasoning: "no" | "split" | "open",
): GrammarSource {
  if (markers === null || reasoning === "no") return { kind: "gbnf", text };
  const close = JSON.stringify(markers.close);
  const thought = `fermata-thought ${close} [ \\n]*`;
  const root =
    reasoning === "open"
      ? `${thought} ${userRoot}`
      : `(${JSON.stringify(markers.open)} ${thought})? ${userRoot}`;
  const first = escapeClass(markers.close.charAt(0));
  const second = escapeClass(markers.close.charAt(1));
  return {
    kind: "gbnf",
    text: `root ::= ${root}\nfermata-thought ::= ([^${first}] | "${escapeClass(markers.close.charAt(0))}" [^${second}])*\n${renameRoot(text)}`,
  };
}

function escapeClass(character: string): string {
  return character.replace(/[\\\]^"-]/u, "\\$&");
}

/** Outside of strings, classes and comments. */
function renameRoot(text: string): string {
  const tokens = /"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*|[a-zA-Z][a-zA-Z0-9-]*/gu;
  return text.replace(tokens, (token) => (token === "root" ? userRoot : token));
}
