/** `tools` and `tool_choice` of a chat completion, and what all wires have of a tool. */

import { isDeepStrictEqual } from "node:util";
import type { ToolDefinition } from "../../chat/types.ts";
import {
  optional,
  required,
  type Type,
  type ValuesOf,
  fieldError,
  kindOf,
  withoutIndices,
} from "./field.ts";
import { FermataError } from "../../errors.ts";
import { parseWithLooks, RegexError } from "../../guidance/schema/regex/parse.ts";
import { parsePattern } from "../../guidance/schema/regex/pattern.ts";
import { Steps } from "../../guidance/schema/steps.ts";
import { type JsonObject, isJsonObject } from "../../json.ts";
import {
  boolean,
  either,
  list,
  mapped,
  notNull,
  object,
  oneOf,
  record,
  tagged,
  text,
} from "./values.ts";

/** A tool's name. @param max characters */
export function toolName(max: number): Type<string> {
  const legal = new RegExp(`^[A-Za-z0-9_.-]{1,${max}}$`);
  return {
    schema: { type: "string", pattern: legal.source },
    remedy: `Send 1 to ${max} letters, digits, underscores, dots or hyphens`,
    read(value, path) {
      if (typeof value === "string" && legal.test(value)) return value;
      const code = typeof value === "string" ? "invalid_value" : "invalid_type";
      throw fieldError(code, path, "is not a legal name", this.remedy);
    },
  };
}

/** JSON Schema of a tool's arguments. */
export function argumentsSchema(remedy: string): Type<JsonObject> {
  return {
    ...record(remedy),
    read(value, path) {
      if (isJsonObject(value)) return value;
      const problem = `must be a JSON Schema object, not ${kindOf(value)}`;
      throw fieldError("invalid_type", path, problem, remedy);
    },
  };
}

export const description = optional(text({ remedy: "Send a string" }));

export const functionFields = {
  name: required(toolName(64)),
  description,
  parameters: optional(argumentsSchema("Leave it out for a tool without arguments"), "", {
    type: "object",
    properties: {},
  }),
  strict: optional(boolean),
};

/** Name, description and parameters of a function, wherever the API puts them. */
export const functionDefinition = mapped(
  object(functionFields, 'Send {"name": …, "parameters": …}', "passed over"),
  definitionOf,
);

export function definitionOf({
  name,
  description: about,
  parameters,
  strict,
}: ValuesOf<typeof functionFields>): ToolDefinition {
  return {
    name,
    ...(about === undefined ? {} : { description: about }),
    parameters,
    ...(strict === undefined ? {} : { strict }),
  };
}

/**
 * Tools of different names: one that is listed twice is one. An entry that reads as null is skipped.
 * @param nameField of an entry
 */
export function toolList<Tool extends { name: string }>(
  entry: Type<Tool | null>,
  nameField: (tool: Tool) => string,
): Type<Tool[]> {
  return mapped(list(entry, { remedy: "Send an array of tools" }), (entries, path) => {
    const tools = new Map<string, Tool>();
    for (const [index, tool] of entries.entries()) {
      if (tool === null) continue;
      const earlier = tools.get(tool.name);
      if (earlier !== undefined && !isDeepStrictEqual(earlier, tool)) {
        const problem = "is used by an earlier tool that is not the same";
        const field = `${path}[${index}].${nameField(tool)}`;
        throw fieldError("invalid_value", field, problem, "Give each tool its own name");
      }
      tools.set(tool.name, tool);
    }
    return [...tools.values()];
  });
}

/** Responses have an object's fields beside its type, chat completions one level below, in `key`. */
function flatOrNested<Value>(key: string, type: Type<Value>): Type<Value> {
  const { properties } = type.schema as { properties: object };
  const nested = { ...properties, [key]: type.schema };
  return {
    schema: { type: "object", properties: nested },
    remedy: type.remedy,
    read(value, path, reading) {
      const target = record(type.remedy).read(value, path, reading)[key];
      return isJsonObject(target)
        ? type.read(target, `${path}.${key}`, reading)
        : type.read(value, path, reading);
    },
  };
}

/** What its input must look like. */
interface InputFormat {
  /** Of the one string. */
  schema: JsonObject;
  /** For the model, behind the description. */
  note: string;
}

const free: InputFormat = { schema: { type: "string" }, note: "" };
const showGrammar = 'Send {"type": "text"} or {"type": "grammar", "syntax": …, "definition": …}';
const grammar = flatOrNested(
  "grammar",
  mapped(
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
          schema: { type: "string", pattern: wholePattern(definition, `${path}.definition`) },
          note: `The input matches this regular expression: ${definition}`,
        };
      }
      warn(`${withoutIndices(path)}.syntax=lark`, "is only shown to the model, and not enforced");
      return { ...free, note: `The input follows this grammar, in Lark's syntax:\n${definition}` };
    },
  ),
);

/** Flags at the beginning keep their place there. @throws FermataError invalid_value: no mask could hold it */
function wholePattern(definition: string, path: string): string {
  const [flags = ""] = /^\(\?[a-z]+\)/u.exec(definition) ?? [];
  const pattern = `^${flags}(?:${definition.slice(flags.length)})$`;
  try {
    // By itself: a bracket too many must not close the group around it.
    parseWithLooks(definition);
    parseWithLooks(pattern);
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    throw fieldError("invalid_value", path, error.message, "Send a regular expression without it");
  }
  if (matchesNoText(pattern))
    throw fieldError("invalid_value", path, "matches no text", "Send one that matches some");
  return pattern;
}

/** Steps in which it is looked for here; what takes more is found where the schema is compiled, or left to the validator. */
const searchSteps = 200;

function matchesNoText(pattern: string): boolean {
  try {
    return parsePattern(pattern, false, new Steps(searchSteps).count) === null;
  } catch (error) {
    if (error instanceof RegexError || error instanceof FermataError) return false;
    throw error;
  }
}

const inputFormat = tagged(
  { text: mapped(record(showGrammar), () => free), grammar },
  {
    remedy: showGrammar,
    others: { code: "invalid_value", problem: "is not a known format", remedy: showGrammar },
  },
);

const { name: ownName, strict } = functionFields;
const customFields = object(
  { name: ownName, description, strict, format: optional(inputFormat, "", free) },
  'Send {"name": …}',
  "passed over",
);

/** A tool of type `custom`: its input is text. The model knows it as a function with one string. */
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

const showTool = 'Send {"type": "function", "function": {"name": …}}';
const nestedFunction = mapped(
  object({ function: required(functionDefinition) }, showTool, "passed over"),
  (tool) => tool.function,
);

/** Undefined if the request gives no tools at all, which is not the same as giving none. Clients send hosted tools unasked. */
export const toolsField = optional(
  toolList(
    tagged(
      { function: nestedFunction },
      {
        remedy: showTool,
        others: { warning: "is not a function tool and is skipped", remedy: 'Send "function"' },
      },
    ),
    () => "function.name",
  ),
  "of type `function`; others are skipped with a warning",
);

export interface ChatTools {
  definitions: ToolDefinition[];
  /** Names of those whose input is text. */
  custom: ReadonlySet<string>;
}

const showCustom = 'Send {"type": "custom", "custom": {"name": …}}';
const chatTool = tagged(
  {
    function: mapped(nestedFunction, (definition) => ({
      name: definition.name,
      definition,
      isCustom: false,
    })),
    custom: mapped(
      object({ custom: required(customTool) }, showCustom, "passed over"),
      ({ custom: definition }) => ({ name: definition.name, definition, isCustom: true }),
    ),
  },
  {
    remedy: showTool,
    others: { warning: "is not run here and is skipped", remedy: 'Send "function" or "custom"' },
  },
);

/** Of a chat completion; see `toolsField`. */
export const chatToolsField = optional(
  mapped(
    toolList(chatTool, ({ isCustom }) => (isCustom ? "custom.name" : "function.name")),
    (tools): ChatTools => ({
      definitions: tools.map(({ definition }) => definition),
      custom: new Set(tools.flatMap(({ name, isCustom }) => (isCustom ? [name] : []))),
    }),
  ),
  "of types `function` and `custom`; others are skipped with a warning",
);

/** @template Reference what names a tool: by default, the name that the model knows it by */
export interface ToolChoice<Reference = string> {
  mode: "auto" | "none" | "required";
  /** The tools that may be called; undefined: all. */
  allowed?: Reference[];
  /** One call of the tool it names. */
  named?: boolean;
}

const showChoice =
  'Send "auto", "none", "required", {"type": "function", "function": {"name": …}} or allowed_tools';
const showName = "Send the name of an offered tool";

const nameAlone = object(
  { name: required(text({ min: 1, remedy: showName })) },
  showName,
  "passed over",
);

/** The name of a tool of this type. */
export function toolOfType(type: "function" | "custom"): Type<string> {
  return mapped(flatOrNested(type, nameAlone), ({ name }) => name);
}

/** A choice of one tool, which is called once. */
export function oneTool<Reference>(tool: Type<Reference>): Type<ToolChoice<Reference>> {
  return mapped(tool, (one) => ({ mode: "required", allowed: [one], named: true }));
}

const unknownChoice = {
  code: "unsupported_value" as const,
  problem: "is not a known choice",
  remedy: showChoice,
};

/**
 * Whether its tools are offered is checked by `checkToolChoice`, when they are known.
 * @param choices by their type @param references by their type, in `allowed_tools`; other types are those of hosted tools
 */
export function toolChoice<Reference>(
  choices: Record<string, Type<ToolChoice<Reference>>>,
  references: Record<string, Type<Reference>>,
): Type<ToolChoice<Reference>> {
  const reference = tagged(references, {
    remedy: showName,
    others: { warning: "is not run here and is skipped", remedy: 'Send "function"' },
    untagged: () => "function",
  });
  const allowedTools = object(
    {
      mode: required(oneOf(["auto", "required"], "mode")),
      tools: required(list(reference, { min: 1, remedy: "List at least one tool" })),
    },
    'Send {"mode": "auto", "tools": […]}',
    "passed over",
  );
  const allowed = mapped(
    flatOrNested("allowed_tools", allowedTools),
    ({ mode, tools }): ToolChoice<Reference> => ({
      mode,
      allowed: [...new Set(tools.filter((tool) => tool !== null))],
    }),
  );
  const kinds = { ...choices, allowed_tools: allowed };
  return either(
    {
      string: mapped(oneOf(["auto", "none", "required"]), (mode): ToolChoice<Reference> => ({
        mode,
      })),
      object: tagged(kinds, { remedy: showChoice, others: unknownChoice }),
    },
    "a string or an object",
    showChoice,
  );
}

const [functionName, customName] = [toolOfType("function"), toolOfType("custom")];

export const toolChoiceField = optional(
  toolChoice(
    { function: oneTool(functionName), custom: oneTool(customName) },
    { function: functionName, custom: customName },
  ),
  "`auto`, `none`, `required`, a function or custom tool, `allowed_tools`; default `auto`",
);
export const parallelField = optional(boolean, "`false`: one call in a round", true);

/** @param tools those that this request can call, wherever they come from */
export function checkToolChoice(
  { mode, allowed }: ToolChoice,
  tools: readonly Pick<ToolDefinition, "name">[],
): void {
  if (mode === "required" && (tools.length === 0 || allowed?.length === 0)) {
    const problem = "asks for a call, and there is no tool";
    throw fieldError("invalid_value", "tool_choice", problem, "Offer tools");
  }
  const names = new Set(tools.map((one) => one.name));
  const unknown = allowed?.find((one) => !names.has(one));
  if (unknown === undefined) return;
  const problem = `names the tool "${unknown.slice(0, 64)}", which is not offered`;
  throw fieldError("invalid_value", "tool_choice", problem, "Name one of tools");
}
