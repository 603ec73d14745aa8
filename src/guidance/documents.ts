/** The form that a client wants the answer to have: the Lark rule `document`, or a grammar in GBNF. */

import type { GrammarSource } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import type { CallSyntax } from "./call-syntax.ts";
import type { GuidedSchema, SchemaUse } from "./refuse-schemas.ts";
import { type Markup, documentStyle, literal, regexTerminal } from "./lark.ts";
import { jsonValue } from "./json-values.ts";
import { RegexError, parseRegex } from "./schema/regex/parse.ts";
import { writeExact } from "./schema/regex/write.ts";
import type { DocumentFormat, ReasoningMarkers, RoundReasoning } from "./types.ts";

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
      const refusesMistakes = true;
      return { schema, options, subject, field, strict, alwaysStrict, refusesMistakes };
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

/** Where the client's grammar stands in a round. */
export interface GbnfPlace {
  markup: Markup;
  syntax: CallSyntax;
  markers: ReasoningMarkers | null;
  reasoning: RoundReasoning;
}

/** The client's grammar between the answer's own markers, after reasoning where there is some. */
export function gbnfDocument(
  { text }: Extract<DocumentFormat, { kind: "grammar" }>,
  { markup, syntax, markers, reasoning }: GbnfPlace,
): GrammarSource {
  const answer = [markup.sequence(syntax.textOpen ?? ""), userRoot];
  answer.push(markup.sequence(syntax.textClose ?? ""));
  const parts = answer.filter((part) => part !== "");
  if (markers === null || reasoning === "no")
    return {
      kind: "gbnf",
      text: parts.length === 1 ? text : `root ::= ${parts.join(" ")}\n${renameRoot(text)}`,
    };
  const end = markup.sequence(syntax.afterReasoning ?? "");
  const thought = [`${thoughtRule}-0`, ...(end === "" ? [] : [end]), "[ \\n]{0,4}"].join(" ");
  const open = markup.sequence(markers.open);
  const begin = reasoning === "open" ? thought : `(${open} ${thought})?`;
  const rules = thoughtRules(markers.close, markup);
  return {
    kind: "gbnf",
    text: `root ::= ${begin} ${parts.join(" ")}\n${rules}${renameRoot(text)}`,
  };
}

const thoughtRule = "fermata-thought";

/**
 * Text up to and with the first `close`: a rule for each number of its characters that the text ends with. Few ways in
 * each: the engine follows them all. A control token that `close` begins with is named: it is spelled nowhere.
 */
function thoughtRules(close: string, markup: Markup): string {
  const characters = [...close];
  const token = markup.startsWithToken(close) ? [markup.sequence(close)] : [];
  const rules = characters.map((_, count) => {
    const begun = characters.slice(0, count);
    const ways = [...new Set(characters)]
      .map((letter) => ({ letter, next: overlap([...begun, letter], characters) }))
      .filter(({ next }) => next > 0);
    const expressions = ways.map(({ letter, next }) =>
      next === characters.length
        ? `[${escaped(letter)}]`
        : `[${escaped(letter)}] ${thoughtRule}-${next}`,
    );
    expressions.push(`[^${ways.map(({ letter }) => escaped(letter)).join("")}] ${thoughtRule}-0`);
    return `${thoughtRule}-${count} ::= ${[...expressions, ...token].join(" | ")}\n`;
  });
  return rules.join("");
}

/** How many characters at the end of `text` are the beginning of `marker`. */
function overlap(text: readonly string[], marker: readonly string[]): number {
  for (let count = Math.min(text.length, marker.length); count > 0; count--) {
    if (text.slice(-count).every((letter, index) => letter === marker[index])) return count;
  }
  return 0;
}

function escaped(character: string): string {
  return `\\U${character.codePointAt(0)!.toString(16).padStart(8, "0")}`;
}

/** Outside of strings, classes and comments. */
function renameRoot(text: string): string {
  const tokens = /"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*|[a-zA-Z][a-zA-Z0-9-]*/gu;
  return text.replace(tokens, (token) => (token === "root" ? userRoot : token));
}
