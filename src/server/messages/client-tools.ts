/** Tools that Anthropic's models know by their type alone and the client runs: what another model must be told of them. */

import type { ToolDefinition } from "../../chat/types.ts";
import { required, type Type } from "../body/field.ts";
import { mapped, object } from "../body/values.ts";
import { toolName } from "../body/tools.ts";
import type { JsonObject } from "../../json.ts";

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
export const knownTools = {
  bash_20241022: known(bash),
  bash_20250124: known(bash),
  text_editor_20241022: known(olderEditor),
  text_editor_20250124: known(olderEditor),
  text_editor_20250429: known(editor),
  text_editor_20250728: known(editor),
  memory_20250818: known(memory),
};
