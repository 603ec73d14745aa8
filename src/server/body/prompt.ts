/** What a prompt is made of: the messages, how it ends, and what the template is given. */

import type { ChatMessage, PromptRequest, TemplateVariables } from "../../chat/types.ts";
import { optional, type FieldTable, type ValuesOf, fieldError, isAbsent } from "./field.ts";
import { messagesField } from "./messages.ts";
import { boolean, mapped, oneOf, record } from "./values.ts";

/** `prefill` is "" where the answer begins with the model's own words. */
export type Conversation = Pick<PromptRequest, "messages" | "openTurn"> & { prefill: string };

export const conversationFields = {
  messages: messagesField,
  continue_final_message: optional(
    boolean,
    "an answer that the last message begins is continued, unless this is `false`; only what is new is told",
  ),
  add_generation_prompt: optional(
    boolean,
    "`false`: the prompt does not open the assistant's turn; `true` is refused beside `continue_final_message: true`",
  ),
} satisfies FieldTable;

/**
 * A last message of the assistant's is continued, as llama-server does it, unless `continue_final_message` is
 * false. Calls cannot be continued: behind them, another turn is opened.
 * @param count messages of the body, some of which may have become one
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function conversationOf(
  given: ValuesOf<typeof conversationFields>,
  count: number,
): Conversation {
  const { messages, continue_final_message: continues, add_generation_prompt: opens } = given;
  const last = messages.at(-1);
  const isBegun = last?.role === "assistant" && last.toolCalls === undefined;
  if (continues === true) {
    const field = "continue_final_message";
    const problem = "excludes add_generation_prompt";
    if (opens === true) throw fieldError("invalid_value", field, problem, "Send one of the two");
    const needed = "needs a last message that is the assistant's and has no calls";
    if (!isBegun) throw fieldError("invalid_value", field, needed, "Leave it out");
  }
  if (!isBegun || continues === false) return { messages, prefill: "", openTurn: opens !== false };
  const before = messages.slice(0, -1);
  if (last.content === "" && last.reasoning === undefined)
    return { messages: before, prefill: "", openTurn: true };
  const field = `messages[${count - 1}]`;
  const remedy = `${lastIsUsers}, or send "continue_final_message": false`;
  if (before.at(-1)?.role === "assistant")
    throw fieldError("invalid_value", field, "and the one before are the assistant's", remedy);
  return { messages: before, prefill: prefillOf(last, before, field, remedy), openTurn: true };
}

export const lastIsUsers = "Let the last message be the user's";

/** The words that an answer begins with. @throws FermataError of status 400: they cannot be continued */
export function prefillOf(
  { content, toolCalls, reasoning }: Extract<ChatMessage, { role: "assistant" }>,
  before: readonly ChatMessage[],
  field: string,
  remedy: string,
): string {
  if (toolCalls !== undefined)
    throw fieldError("invalid_value", field, "has calls without results", remedy);
  if (content === "" || reasoning !== undefined) {
    const problem = "is the assistant's, and only text that it begins with can be continued";
    throw fieldError("unsupported_value", field, problem, remedy);
  }
  if (!before.some(({ role }) => role === "user" || role === "tool"))
    throw fieldError("invalid_value", field, "has no question before it", remedy);
  return content;
}

/** Of `chat_template_kwargs`, in characters of JSON: each is made a value of the template's at every rendering. */
const maxVariables = 64 * 1024;

export const reasoningEffort = oneOf(
  ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  "effort",
);

const variables = mapped(
  record('Send {"<name>": <value>}', {
    properties: { enable_thinking: boolean.schema },
  }),
  (given, path, reading): TemplateVariables => {
    const enabled = given["enable_thinking"];
    if (!isAbsent(enabled)) boolean.read(enabled, `${path}.enable_thinking`, reading);
    const size = JSON.stringify(given).length;
    if (size <= maxVariables) return given;
    const problem = `has ${size} characters as JSON`;
    throw fieldError("invalid_value", path, problem, `Send at most ${maxVariables}`);
  },
);

export const templateFields = {
  reasoning_effort: optional(
    reasoningEffort,
    "`none` and `minimal` switch thinking off, the others on; also goes to the model's template",
  ),
  chat_template_kwargs: optional(
    variables,
    "goes to the model's template; `enable_thinking` switches thinking on or off, whatever the template calls it",
    {},
  ),
} satisfies FieldTable;

/** What goes to the template: the effort under its own name, and the variables. */
export function templateVariables(
  effort: string | undefined,
  given: TemplateVariables,
): TemplateVariables {
  return effort === undefined ? given : { reasoning_effort: effort, ...given };
}
