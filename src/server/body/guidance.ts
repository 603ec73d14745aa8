/** What form the answer shall have: `response_format`, the names that vLLM and llama-server have, the choice of tools. */

import type { DocumentFormat, Guidance } from "../../guidance/types.ts";
import {
  ignored,
  optional,
  required,
  type FieldTable,
  type Type,
  type ValuesOf,
  fieldError,
  isAbsent,
  kindOf,
} from "./field.ts";
import { type JsonObject, isJsonObject, parseJson } from "../../json.ts";
import type { ToolChoice } from "./tools.ts";
import { boolean, list, mapped, object, record, tagged, text } from "./values.ts";

const maxChoices = 1000;
const maxText = 128 * 1024;

/** Text is read as JSON. */
const jsonSchema: Type<JsonObject | boolean> = {
  schema: { type: "object" },
  remedy: "Send an object",
  read(value, path) {
    const schema = typeof value === "string" ? parseJson(value) : value;
    if (schema === undefined) {
      const remedy = "Send the schema as an object";
      throw fieldError("invalid_value", path, "is a string that is not JSON", remedy);
    }
    if (isJsonObject(schema) || typeof schema === "boolean") return schema;
    const problem = `must be a JSON Schema, not ${kindOf(schema)}`;
    throw fieldError("invalid_type", path, problem, this.remedy);
  },
};

/** An explicit request to guide: what cannot be enforced is refused. */
const guidedSchema = mapped(jsonSchema, (schema, path): DocumentFormat => {
  return { kind: "json_schema", schema, strict: true, alwaysStrict: true, field: path };
});
const guidedRegex = mapped(guidingText("a regular expression"), (pattern, path): DocumentFormat => {
  return { kind: "regex", pattern, field: path };
});
const guidedGrammar = mapped(
  guidingText("a grammar in Lark or GBNF"),
  (grammar, path): DocumentFormat => ({ kind: "grammar", text: grammar, field: path }),
);
const typedRemedy = 'Send a text, or {"type": "regex", "value": "…"}';
const typed = (type: Type<DocumentFormat>): Type<DocumentFormat> =>
  mapped(object({ value: required(type) }, typedRemedy, "passed over"), ({ value }) => value);
/** mistral.rs's. */
const typedGrammar = tagged(
  {
    regex: typed(guidedRegex),
    json_schema: typed(guidedSchema),
    lark: typed(guidedGrammar),
  },
  {
    remedy: typedRemedy,
    others: {
      code: "unsupported_value",
      problem: "is not a known type",
      remedy: 'Send "regex", "json_schema" or "lark"',
    },
  },
);
const choiceRemedy = `Send 1 to ${maxChoices} strings`;
/** llama-server's clients send an empty one where they have none. */
const grammar: Type<DocumentFormat | null> = {
  ...guidedGrammar,
  read(value, path, reading) {
    if (isJsonObject(value)) return typedGrammar.read(value, path, reading);
    return value === "" ? null : guidedGrammar.read(value, path, reading);
  },
};
const guidedChoice = mapped(
  list(choiceType(), { min: 1, max: maxChoices, remedy: choiceRemedy }),
  (choices): DocumentFormat => ({ kind: "choice", choices: [...new Set(choices)] }),
);
const jsonObject: Type<DocumentFormat> = {
  schema: { type: "boolean" },
  remedy: "Send true or false",
  read(value, path) {
    if (value === true) return { kind: "json_object" };
    const problem = `must be a boolean, not ${kindOf(value)}`;
    throw fieldError("invalid_type", path, problem, this.remedy);
  },
};

/** vLLM's object has the same forms under shorter names. */
const structuredForms: Readonly<Record<string, Type<DocumentFormat>>> = {
  json: guidedSchema,
  regex: guidedRegex,
  choice: guidedChoice,
  grammar: guidedGrammar,
  json_object: jsonObject,
};
const structuredOutputs: Type<DocumentFormat> = {
  schema: {
    anyOf: Object.entries(structuredForms).map(([name, { schema }]) => ({
      type: "object",
      properties: { [name]: schema },
      required: [name],
    })),
  },
  remedy: `Send one of ${Object.keys(structuredForms).join(", ")}`,
  read(value, path, reading) {
    const body = record(this.remedy).read(value, path, reading);
    const forms: DocumentFormat[] = [];
    for (const [key, form] of Object.entries(body)) {
      if (isAbsent(form) || form === false || key === "disable_fallback") continue;
      const place = `${path}.${key.slice(0, 64)}`;
      if (!Object.hasOwn(structuredForms, key))
        throw fieldError("unsupported_value", place, "is not supported", this.remedy);
      forms.push(structuredForms[key]!.read(form, place, reading));
    }
    const [first, ...others] = forms;
    if (first !== undefined && others.length === 0) return first;
    throw fieldError("invalid_value", path, `has ${forms.length} forms`, this.remedy);
  },
};

const showNamed = 'Send {"name": …, "schema": …}';
const namedSchema = mapped(
  object(
    {
      name: ignored("is not used"),
      schema: required(jsonSchema),
      strict: optional(boolean, "", false),
    },
    showNamed,
    "passed over",
  ),
  ({ schema, strict }, path): DocumentFormat => {
    return { kind: "json_schema", schema, strict, field: `${path}.schema` };
  },
);

/** @param withSchema of type `json_schema` */
function formats(withSchema: Type<DocumentFormat>, remedy: string): Type<DocumentFormat | null> {
  return tagged(
    {
      text: mapped(record(remedy), (): DocumentFormat | null => null),
      json_object: mapped(record(remedy), (): DocumentFormat => ({ kind: "json_object" })),
      json_schema: withSchema,
    },
    {
      remedy,
      others: {
        code: "unsupported_value",
        problem: "is not a known type",
        remedy: 'Send "text", "json_object" or "json_schema"',
      },
    },
  );
}

/** `text.format` of responses, `output_config.format` of messages. Null: any text. */
export const textFormat = formats(namedSchema, 'Send {"type": "json_schema", "schema": …}');

const showNested = 'Send {"type": "json_schema", "json_schema": …}';
const nestedSchema = object({ json_schema: required(namedSchema) }, showNested, "passed over");
const nestedFormat = formats(
  mapped(nestedSchema, (given) => given.json_schema),
  showNested,
);

/** Hugging Face's clients send TGI's form: `{"type": "json", "value": <schema>}`. */
const hubFormat = tagged(
  {
    json: typed(guidedSchema),
    json_object: typed(guidedSchema),
    json_schema: typed(guidedSchema),
    regex: typed(guidedRegex),
  },
  {
    remedy: 'Send {"type": "json", "value": …}',
    others: {
      code: "unsupported_value",
      problem: "has no value",
      remedy: 'Send "json" or "regex" with a value',
    },
  },
);

/** Null: any text. A schema may stand beside the type, as llama-server has it. */
export const responseFormat: Type<DocumentFormat | null> = {
  ...nestedFormat,
  read(value, path, reading) {
    const format = record(this.remedy).read(value, path, reading);
    const { type, schema, json_schema: nested, value: hub } = format;
    if (!isAbsent(hub) && isAbsent(schema) && isAbsent(nested))
      return hubFormat.read(format, path, reading);
    if (isAbsent(schema)) return nestedFormat.read(format, path, reading);
    if (type === "text" || !isAbsent(nested)) {
      const other = type === "text" ? `${path}.type` : `${path}.json_schema`;
      const problem = `contradicts "${other}"`;
      throw fieldError("invalid_value", `${path}.schema`, problem, "Send one of the two");
    }
    return type === "json_object"
      ? namedSchema.read(format, path, reading)
      : textFormat.read(format, path, reading);
  },
};

function guidingText(what: string): Type<string> {
  const any = text({ min: 1, max: maxText, remedy: `Send ${what}` });
  return mapped(any, (value, path) => {
    if (value.trim() !== "") return value;
    throw fieldError("invalid_value", path, "is empty", any.remedy);
  });
}

function choiceType(): Type<string> {
  const any = text({ min: 1, remedy: choiceRemedy });
  return {
    ...any,
    read: (value, path, reading) =>
      typeof value === "number" || typeof value === "boolean"
        ? String(value)
        : any.read(value, path, reading),
  };
}

/** One name for each form. */
export const documentFields = {
  response_format: optional(
    responseFormat,
    "a `schema` may stand beside the type, as at llama-server",
  ),
  guided_json_schema: optional(guidedSchema, "a JSON Schema that the answer satisfies"),
  guided_json: optional(guidedSchema, "the same under vLLM's name"),
  guided_regex: optional(guidedRegex, "ECMA-262, of the whole answer; what is regular"),
  guided_choice: optional(guidedChoice, "strings, one of which is the answer"),
  guided_grammar: optional(
    guidedGrammar,
    "Lark as llguidance has it, or GBNF if it contains `::=`",
  ),
  structured_outputs: optional(
    structuredOutputs,
    "vLLM's object: one of `json`, `regex`, `choice`, `grammar`, `json_object`",
  ),
  json_schema: optional(guidedSchema, "as guided_json_schema, under llama-server's name"),
  grammar: optional(
    grammar,
    'as guided_grammar, under llama-server\'s name; an empty text is none. Or mistral.rs\'s `{"type": "regex", "value": …}`',
  ),
  regex: optional(guidedRegex, "as guided_regex, under SGLang's name"),
  ebnf: optional(guidedGrammar, "as guided_grammar, under SGLang's name"),
} satisfies FieldTable;

type DocumentValues = Partial<ValuesOf<typeof documentFields>>;

/**
 * @param given what a field of this wire's own has asked for
 * @throws FermataError of status 400 when two fields ask for different forms
 */
export function documentOf(
  values: DocumentValues,
  given?: { document: DocumentFormat | null | undefined; field: string },
): DocumentFormat | undefined {
  let document = given?.document ?? undefined;
  let from = given?.field ?? "";
  for (const field of Object.keys(documentFields) as (keyof DocumentValues)[]) {
    const format = values[field];
    if (isAbsent(format)) continue;
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
