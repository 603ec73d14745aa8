/** What form the answer shall have: `response_format`, the names that vLLM and llama-server have, the choice of tools. */

import type { DocumentFormat, Guidance } from "../../guidance/types.ts";
import { fieldError, isAbsent, isObject, kindOf, readBoolean, type JsonObject } from "./fields.ts";
import type { ToolChoice } from "./tool-choice.ts";

const maxChoices = 1000;
const maxText = 128 * 1024;

/** One name for each form; the first is ours. */
const readers: readonly [
  field: string,
  read: (value: unknown, field: string) => DocumentFormat | null,
][] = [
  ["response_format", readResponseFormat],
  ["guided_json_schema", readGuidedJson],
  ["guided_json", readGuidedJson],
  ["guided_regex", readGuidedRegex],
  ["guided_choice", readGuidedChoice],
  ["guided_grammar", readGuidedGrammar],
  ["structured_outputs", readStructuredOutputs],
  ["json_schema", readGuidedJson],
  ["grammar", readGuidedGrammar],
];
/** vLLM's object has the same forms under shorter names. */
const structuredReaders = {
  json: readGuidedJson,
  regex: readGuidedRegex,
  choice: readGuidedChoice,
  grammar: readGuidedGrammar,
  json_object: readJsonObject,
};
const structuredRemedy = `Send one of ${Object.keys(structuredReaders).join(", ")}`;

/** @throws FermataError of status 400, also when two fields ask for different forms */
export function parseGuidance(body: JsonObject, choice: ToolChoice): Guidance {
  return guidanceOf(choice, {
    document: readDocument(body),
    parallel: readBoolean(body, "parallel_tool_calls", true),
    closeAtLimit: readBoolean(body, "close_at_limit", false),
  });
}

/**
 * @param given what a field of this wire's own has asked for
 * @throws FermataError of status 400, also when two fields ask for different forms
 */
export function readDocument(
  body: JsonObject,
  given?: { document: DocumentFormat | undefined; field: string },
): DocumentFormat | undefined {
  let { document, field: from } = given ?? { document: undefined, field: "" };
  for (const [field, read] of readers) {
    if (isAbsent(body[field])) continue;
    const format = read(body[field], field);
    if (format === null) continue;
    if (document !== undefined)
      throw fieldError("invalid_value", field, `contradicts "${from}"`, "Send one of the two");
    document = format;
    from = field;
  }
  return document;
}

export function guidanceOf(
  { mode, allowed, named }: ToolChoice,
  rest: { document?: DocumentFormat | undefined; parallel: boolean; closeAtLimit: boolean },
): Guidance {
  return {
    toolChoice: mode === "required" ? "required" : "auto",
    ...(allowed === undefined ? {} : { allowed }),
    ...(rest.document === undefined ? {} : { document: rest.document }),
    parallel: rest.parallel && named !== true,
    closeAtLimit: rest.closeAtLimit,
  };
}

/** `response_format` of chat completions, and `text.format` of responses, which does not nest the schema. */
export function readResponseFormat(value: unknown, field: string): DocumentFormat | null {
  if (!isObject(value))
    throw fieldError(
      "invalid_type",
      field,
      `must be an object, not ${kindOf(value)}`,
      'Send {"type": "json_schema", "json_schema": …}',
    );
  const { type } = value;
  const isNested = field === "response_format";
  const hasSchema = isNested && !isAbsent(value["schema"]);
  if (hasSchema && (type === "text" || !isAbsent(value["json_schema"]))) {
    const other = type === "text" ? `${field}.type` : `${field}.json_schema`;
    const problem = `contradicts "${other}"`;
    throw fieldError("invalid_value", `${field}.schema`, problem, "Send one of the two");
  }
  if (type === "text") return null;
  if (type === "json_object" && !hasSchema) return { kind: "json_object" };
  if (type !== "json_schema" && type !== "json_object") {
    const code = type === undefined ? "missing_field" : "unsupported_value";
    throw fieldError(
      code,
      `${field}.type`,
      "is not a known type",
      'Send "text", "json_object" or "json_schema"',
    );
  }
  // Beside the type, as llama-server has it.
  const isBeside = !isNested || hasSchema;
  const target = isBeside ? value : value["json_schema"];
  const place = isBeside ? field : `${field}.json_schema`;
  if (!isObject(target))
    throw fieldError(
      target === undefined ? "missing_field" : "invalid_type",
      place,
      `must be an object, not ${kindOf(target)}`,
      'Send {"name": …, "schema": …}',
    );
  const { schema, strict } = target;
  if (!isAbsent(strict) && typeof strict !== "boolean")
    throw fieldError(
      "invalid_type",
      `${place}.strict`,
      `must be a boolean, not ${kindOf(strict)}`,
      "Send true or false",
    );
  return {
    kind: "json_schema",
    schema: readSchema(schema ?? {}, `${place}.schema`),
    strict: strict === true,
    field: `${place}.schema`,
  };
}

/** An explicit request to guide: what cannot be enforced is refused. */
function readGuidedJson(value: unknown, field: string): DocumentFormat {
  const schema = readSchema(value, field);
  return { kind: "json_schema", schema, strict: true, alwaysStrict: true, field };
}

function readSchema(value: unknown, field: string): JsonObject | boolean {
  const schema = typeof value === "string" ? parseJson(value, field) : value;
  if (isObject(schema) || typeof schema === "boolean") return schema;
  throw fieldError(
    "invalid_type",
    field,
    `must be a JSON Schema, not ${kindOf(schema)}`,
    "Send an object",
  );
}

function parseJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw fieldError(
      "invalid_value",
      field,
      "is a string that is not JSON",
      "Send the schema as an object",
    );
  }
}

function readStructuredOutputs(value: unknown, field: string): DocumentFormat | null {
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", field, problem, structuredRemedy);
  }
  const forms: DocumentFormat[] = [];
  for (const [key, form] of Object.entries(value)) {
    if (isAbsent(form) || form === false || key === "disable_fallback") continue;
    const place = `${field}.${key.slice(0, 64)}`;
    if (!Object.hasOwn(structuredReaders, key))
      throw fieldError("unsupported_value", place, "is not supported", structuredRemedy);
    forms.push(structuredReaders[key as keyof typeof structuredReaders](form, place));
  }
  const [first, ...others] = forms;
  if (first !== undefined && others.length === 0) return first;
  throw fieldError("invalid_value", field, `has ${forms.length} forms`, structuredRemedy);
}

function readJsonObject(value: unknown, field: string): DocumentFormat {
  if (value === true) return { kind: "json_object" };
  const problem = `must be a boolean, not ${kindOf(value)}`;
  throw fieldError("invalid_type", field, problem, "Send true or false");
}

function readGuidedRegex(value: unknown, field: string): DocumentFormat {
  return { kind: "regex", pattern: readText(value, field, "a regular expression"), field };
}

function readGuidedGrammar(value: unknown, field: string): DocumentFormat {
  return { kind: "grammar", text: readText(value, field, "a grammar in Lark or GBNF"), field };
}

function readGuidedChoice(value: unknown, field: string): DocumentFormat {
  const remedy = `Send 1 to ${maxChoices} strings`;
  if (!Array.isArray(value))
    throw fieldError("invalid_type", field, `must be an array, not ${kindOf(value)}`, remedy);
  if (value.length === 0 || value.length > maxChoices)
    throw fieldError("invalid_value", field, `has ${value.length} entries`, remedy);
  const choices = value.map((choice: unknown, index) => {
    if (typeof choice !== "string" && typeof choice !== "number" && typeof choice !== "boolean")
      throw fieldError(
        "invalid_type",
        `${field}[${index}]`,
        `must be a string, not ${kindOf(choice)}`,
        remedy,
      );
    if (choice === "") throw fieldError("invalid_value", `${field}[${index}]`, "is empty", remedy);
    return String(choice);
  });
  return { kind: "choice", choices: [...new Set(choices)] };
}

function readText(value: unknown, field: string, what: string): string {
  if (typeof value !== "string")
    throw fieldError(
      "invalid_type",
      field,
      `must be a string, not ${kindOf(value)}`,
      `Send ${what}`,
    );
  if (value.trim() === "") throw fieldError("invalid_value", field, "is empty", `Send ${what}`);
  if (value.length > maxText)
    throw fieldError(
      "invalid_value",
      field,
      `has more than ${maxText} characters`,
      "Send a shorter one",
    );
  return value;
}
