/** A tool of type `custom`: its input is text. The model knows it as a function with one string. */

import type { ToolDefinition } from "../../chat/types.ts";
import { optional, required, withoutIndices, type Type, type JsonObject } from "../body/field.ts";
import { functionFields } from "../body/tools.ts";
import { mapped, notNull, object, oneOf, record, tagged, text } from "../body/values.ts";

/** What its input must look like. */
interface InputFormat {
  /** Of the one string. */
  schema: JsonObject;
  /** For the model, behind the description. */
  note: string;
}

const free: InputFormat = { schema: { type: "string" }, note: "" };
const showGrammar = 'Send {"type": "text"} or {"type": "grammar", "syntax": …, "definition": …}';
const grammar = mapped(
  object(
    {
      definition: required(notNull(text({ remedy: showGrammar }))),
      syntax: required(oneOf(["regex", "lark"], "syntax")),
    },
    showGrammar,
    "passed over",
  ),
  ({ definition, syntax }, path, { warn }): InputFormat => {
    if (syntax === "regex") {
      return {
        schema: { type: "string", pattern: `^(?:${definition})$` },
        note: `The input matches this regular expression: ${definition}`,
      };
    }
    warn(`${withoutIndices(path)}.syntax=lark`, "is only shown to the model, and not enforced");
    return { ...free, note: `The input follows this grammar, in Lark's syntax:\n${definition}` };
  },
);

const inputFormat = tagged(
  { text: mapped(record(showGrammar), () => free), grammar },
  {
    remedy: showGrammar,
    others: { code: "invalid_value", problem: "is not a known format", remedy: showGrammar },
  },
);

const { name, description, strict } = functionFields;
const customFields = object(
  { name, description, strict, format: optional(inputFormat, "", free) },
  'Send {"name": …}',
  "passed over",
);

export const customTool: Type<ToolDefinition> = mapped(
  customFields,
  ({ name: own, description: about = "", format: { schema, note } }) => {
    const told = [about, note].filter((part) => part !== "").join("\n\n");
    return {
      name: own,
      ...(told === "" ? {} : { description: told }),
      parameters: {
        type: "object",
        properties: { input: schema },
        required: ["input"],
        additionalProperties: false,
      },
    };
  },
);

/** As the response repeats it. */
export function wireCustomTool({ name: own, description: about, format }: JsonObject): JsonObject {
  return {
    type: "custom",
    name: own,
    description: about ?? null,
    format: format ?? { type: "text" },
  };
}
