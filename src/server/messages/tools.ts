/** `tools` and `tool_choice` of an Anthropic request. */

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
import { knownTools } from "./client-tools.ts";
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
