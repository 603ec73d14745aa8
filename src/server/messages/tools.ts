/** `tools` and `tool_choice` of an Anthropic request; what models are told of tools that Anthropic's know by their type alone. */

import type { ToolDefinition } from "../../chat/types.ts";
import { optional, readFields, required, type Type } from "../body/field.ts";
import {
  type ToolChoice,
  argumentsSchema,
  definitionOf,
  description,
  toolList,
  toolName,
} from "../body/tools.ts";
import { boolean, mapped, object, tagged, text } from "../body/values.ts";
import type { JsonObject } from "../../json.ts";

const showTool = 'Send {"name": …, "input_schema": …}';
const clientTool = mapped(
  object(
    {
      name: required(toolName(128)),
      description,
      strict: optional(boolean),
      input_schema: required(argumentsSchema('Send {"type": "object"} for a tool without input')),
    },
    showTool,
    "passed over",
  ),
  ({ input_schema: parameters, ...tool }): ToolDefinition => definitionOf({ ...tool, parameters }),
);

/** Of tools that Anthropic's models know by their type alone and the client runs: what another model must be told of them. */
type Properties = Record<string, object>;

const string = (description: string): object => ({ type: "string", description });
const line = (description: string): object => ({ type: "integer", minimum: 0, description });

const path = string("Path of the file or directory");
const range = {
  type: "array",
  items: { type: "integer" },
  minItems: 2,
  maxItems: 2,
  description: "For view: first and last line, from 1; -1 is the end",
};
const edits = {
  path,
  view_range: range,
  file_text: string("For create: the file's whole text"),
  old_str: string("For str_replace: the text to replace; it must be there once"),
  new_str: string("For str_replace: the text in its place"),
  insert_line: line("For insert: the line behind which the text goes; 0 is the beginning"),
};
const inserted = { insert_text: string("For insert: the text") };

function commands(names: readonly string[], properties: Properties, others: string[]): JsonObject {
  return {
    type: "object",
    properties: { command: { type: "string", enum: names }, ...properties },
    required: ["command", ...others],
  };
}

const bash = {
  about: "Runs a command in a bash session that keeps its state. restart begins a new session.",
  parameters: {
    type: "object",
    properties: {
      command: string("The command to run"),
      restart: { type: "boolean", description: "Begin a new session, in place of a command" },
    },
  },
};

const editor = {
  about: "Views, creates and edits text files.",
  parameters: commands(["view", "create", "str_replace", "insert"], { ...edits, ...inserted }, [
    "path",
  ]),
};

/** The text of an insert is in `new_str`, and the last edit can be taken back. */
const olderEditor = {
  about: editor.about,
  parameters: commands(
    ["view", "create", "str_replace", "insert", "undo_edit"],
    { ...edits, new_str: string("For str_replace: the text in its place; for insert: the text") },
    ["path"],
  ),
};

const memory = {
  about: "Keeps notes in files below /memories over many conversations. Look there first.",
  parameters: commands(
    ["view", "create", "str_replace", "insert", "delete", "rename"],
    {
      ...edits,
      ...inserted,
      old_path: string("For rename: the path so far"),
      new_path: string("For rename: the new path"),
    },
    [],
  ),
};

function known({
  about,
  parameters,
}: {
  about: string;
  parameters: JsonObject;
}): Type<ToolDefinition> {
  return mapped(
    object({ name: required(toolName(128)) }, 'Send {"type": …, "name": …}', "passed over"),
    ({ name }) => ({ name, description: about, parameters }),
  );
}

/** By the types that clients send. */
const knownTools = {
  bash_20241022: known(bash),
  bash_20250124: known(bash),
  text_editor_20241022: known(olderEditor),
  text_editor_20250124: known(olderEditor),
  text_editor_20250429: known(editor),
  text_editor_20250728: known(editor),
  memory_20250818: known(memory),
};

const tool = tagged(
  { custom: clientTool, ...knownTools },
  {
    remedy: showTool,
    others: { warning: "is not a tool of the client and is skipped", remedy: 'Send "custom"' },
    untagged: () => "custom",
  },
);

const tools = toolList(tool, () => "name");

/** Tools that a client loads amid a conversation come last, so that the prompt before them stays as it is. */
const deferredLast: typeof tools = {
  ...tools,
  read(value, path, reading) {
    const read = tools.read(value, path, reading);
    const given = value as JsonObject[];
    const later = new Set(
      given.filter((tool) => tool["defer_loading"] === true).map((tool) => tool["name"]),
    );
    return read.toSorted((a, b) => Number(later.has(a.name)) - Number(later.has(b.name)));
  },
};

export const toolsField = optional(
  deferredLast,
  "of the client, its `bash_*`, `text_editor_*` and `memory_*` among them; those of Anthropic's servers and `computer_*` are skipped with a warning",
);

export interface AnthropicToolChoice extends ToolChoice {
  parallel: boolean;
}

const showChoice = 'Send {"type": "auto"}, "any", "none", or {"type": "tool", "name": …}';
const single = { disable_parallel_tool_use: optional(boolean, "", false) };
const choice = (made: ToolChoice): Type<ToolChoice> =>
  mapped(object(single, showChoice, "passed over"), () => made);

const choices = tagged(
  {
    auto: choice({ mode: "auto" }),
    none: choice({ mode: "none" }),
    any: choice({ mode: "required" }),
    tool: mapped(
      object(
        { name: required(text({ remedy: showChoice })), ...single },
        showChoice,
        "passed over",
      ),
      ({ name }): ToolChoice => ({ mode: "required", allowed: [name] }),
    ),
  },
  {
    remedy: showChoice,
    others: { code: "invalid_value", problem: "is not a known choice", remedy: showChoice },
  },
);

const toolChoice: Type<AnthropicToolChoice> = {
  ...choices,
  read(value, path, reading) {
    const made = choices.read(value, path, reading);
    const given = readFields(single, value as JsonObject, reading, path);
    return { ...made, parallel: !given.disable_parallel_tool_use };
  },
};

export const toolChoiceField = optional(
  toolChoice,
  "`auto`, `any`, `tool`, `none`; `disable_parallel_tool_use`",
);
