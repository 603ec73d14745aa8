/** The fields of a prompt: its messages, its end, and the variables of the template. */

import type { ChatMessage, ToolCall, PromptRequest, TemplateVariables } from "../../chat/types.ts";
import {
  ignored,
  optional,
  refused,
  required,
  type Type,
  fieldError,
  type FieldTable,
  type ValuesOf,
  isAbsent,
} from "./field.ts";
import { countSystems } from "../../chat/template/normalize.ts";
import { customArguments } from "./custom-input.ts";
import { content, resultContent } from "./content-parts.ts";
import { asWritten, exactJson, isJsonObject } from "../../json.ts";
import { list, mapped, object, tagged, text, boolean, oneOf, record } from "./values.ts";

/** Of a role that is nothing without it. Null says nothing, as at llama-server. */
const neededContent: Type<string> = {
  ...content,
  remedy: "Send the message's text as a string",
  read: (value, path, reading) => (value === null ? "" : content.read(value, path, reading)),
};

const asReceived = "Send the call as it was received";
const receivedText = required(text({ min: 1, remedy: asReceived }));

/** Arguments stay as they came, valid JSON or not: they are history, and were once a model's output. */
export const callArguments: Type<string> = {
  schema: { type: "string" },
  remedy: asReceived,
  read: (value) => (typeof value === "string" ? value : exactJson(asWritten(value))),
};

const functionCall = object(
  { name: receivedText, arguments: optional(callArguments, "", "{}") },
  asReceived,
  "passed over",
);

const toolCall = tagged(
  {
    function: mapped(
      object({ id: receivedText, function: required(functionCall) }, asReceived, "passed over"),
      ({ id, function: { name, arguments: text } }): ToolCall => ({ id, name, arguments: text }),
    ),
    custom: mapped(
      object(
        {
          id: receivedText,
          custom: required(
            object(
              { name: receivedText, input: required(text({ remedy: asReceived })) },
              asReceived,
              "passed over",
            ),
          ),
        },
        asReceived,
        "passed over",
      ),
      ({ id, custom: { name, input } }): ToolCall => ({
        id,
        name,
        arguments: customArguments(input),
      }),
    ),
  },
  {
    remedy: asReceived,
    others: {
      code: "unsupported_value",
      problem: "is not a known kind of call",
      remedy: 'Send "function" or "custom"',
    },
    untagged: () => "function",
  },
);

const showMessage = 'Send {"role": …, "content": …}';
const name = ignored("is not used");
const plain = (role: "system" | "user") =>
  mapped(
    object({ content: required(neededContent), name }, showMessage),
    (message): ChatMessage => ({ role, content: message.content }),
  );

const assistant = mapped(
  object(
    {
      content: optional(content, "", ""),
      refusal: optional(content, "", ""),
      reasoning_content: optional(content),
      reasoning: optional(content),
      tool_calls: optional(list(toolCall, { remedy: "Send an array of calls" }), "", []),
      name,
      function_call: refused("was replaced", "Send tool_calls"),
      audio: refused("is audio, and the model reads text only", "Send its transcript as content"),
    },
    showMessage,
  ),
  (message): ChatMessage => {
    const { tool_calls: toolCalls } = message;
    const reasoning = message.reasoning_content ?? message.reasoning ?? "";
    return {
      role: "assistant",
      content: message.content || message.refusal,
      ...(reasoning === "" ? {} : { reasoning }),
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
    };
  },
);

/** Its tool's name is found when the calls before it are known. */
const toolResult = mapped(
  object(
    {
      content: optional(resultContent, "", ""),
      tool_call_id: optional(
        text({ remedy: "Send the id of the tool call that this answers" }),
        "",
        "",
      ),
      name: optional(text(), "", ""),
    },
    showMessage,
  ),
  (message): ChatMessage => {
    const { content: result, tool_call_id: toolCallId, name: of } = message;
    return { role: "tool", toolCallId, name: of, content: result };
  },
);

const roles = tagged(
  {
    system: plain("system"),
    developer: plain("system"),
    user: plain("user"),
    assistant,
    tool: toolResult,
    function: {
      code: "unsupported_value",
      problem: 'is "function", which OpenAI replaced',
      remedy: 'Send role "tool" with tool_call_id',
    },
  },
  {
    tag: "role",
    remedy: showMessage,
    others: {
      code: "invalid_value",
      problem: "is not a known role",
      remedy: "Send system, developer, user, assistant or tool",
    },
  },
);

const message: Type<ChatMessage> = {
  ...roles,
  read(value, path, reading) {
    // Without its role a model would not see the result, and would call the tool again and again.
    const callId =
      isJsonObject(value) && value["role"] === undefined ? value["tool_call_id"] : null;
    if (typeof callId !== "string") return roles.read(value, path, reading);
    const problem = "is missing from what looks like a tool's result";
    const [, corrected] = roundOf(callId);
    const remedy = `Send ${JSON.stringify(corrected)}`;
    throw fieldError("missing_field", `${path}.role`, problem, remedy);
  },
};

/** A call and its result, as they should be sent. */
function roundOf(callId: string): [object, object] {
  const id = callId.slice(0, 100);
  const call = { id, type: "function", function: { name: "…", arguments: "…" } };
  return [
    { role: "assistant", tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: "…" },
  ];
}

export const messagesField = required(
  mapped(
    list(message, { min: 1, remedy: "Send an array with at least one message" }),
    asConversation,
  ),
  "text only; `developer` is `system`; an image in a tool's result becomes a line that says so",
);

/**
 * Results know their calls. A system message that does not lead keeps its place and becomes a user message: moving it
 * to the front would change the first tokens of the prompt and so lose the whole cached prefix.
 * @throws FermataError invalid_value: a result of a call that was not made before it
 */
export function asConversation(messages: readonly ChatMessage[], path: string): ChatMessage[] {
  nameResults(messages, path);
  const leading = countSystems(messages);
  return messages.map((one, index) =>
    one.role === "system" && index >= leading ? { ...one, role: "user" } : one,
  );
}

/**
 * Gives each result the id and the name of its call. One without an id, or with one that no call has, answers the
 * call of its name that waits the longest; without a name, the one that waits the longest (an unknown id: the only one).
 * @throws FermataError invalid_value: a result of a call that was not made before it
 */
function nameResults(messages: readonly ChatMessage[], path: string): void {
  const made = new Map<string, ToolCall>();
  const waiting = new Map<string, ToolCall>();
  for (const [index, one] of messages.entries()) {
    if (one.role === "assistant")
      for (const call of one.toolCalls ?? []) {
        made.set(call.id, call);
        waiting.set(call.id, call);
      }
    if (one.role !== "tool") continue;
    const call = made.get(one.toolCallId) ?? unnamedCall(one, waiting);
    if (call === undefined) {
      const problem = "matches no tool call of an earlier assistant message";
      const example = JSON.stringify(roundOf(one.toolCallId || "call_1"));
      const remedy = `Send the assistant message with its tool_calls before their results, as in ${example}`;
      throw fieldError("invalid_value", `${path}[${index}].tool_call_id`, problem, remedy);
    }
    waiting.delete(call.id);
    one.toolCallId = call.id;
    one.name = call.name;
  }
}

/** Which of the calls that wait, the oldest first, a result answers that does not say so by its id. */
function unnamedCall(
  { toolCallId, name: of }: Extract<ChatMessage, { role: "tool" }>,
  waiting: ReadonlyMap<string, ToolCall>,
): ToolCall | undefined {
  for (const call of waiting.values()) {
    if (of === "" ? toolCallId === "" || waiting.size === 1 : call.name === of) return call;
    if (of === "") return undefined;
  }
  return undefined;
}

/** `prefill` is "" where the answer begins with the model's own words. */
export type Conversation = Pick<PromptRequest, "messages" | "openTurn"> & { prefill: string };

export const conversationFields = {
  messages: messagesField,
  continue_final_message: optional(
    boolean,
    "an answer that the last message begins is continued, unless this is `false`; only the new text is sent; `true` refuses what cannot be continued",
  ),
  add_generation_prompt: optional(
    boolean,
    "`false`: the prompt does not open the assistant's turn; `true` is refused beside `continue_final_message: true`",
  ),
} satisfies FieldTable;

/**
 * A last message of the assistant's is continued, as llama-server does it, unless `continue_final_message` is
 * false. Behind one that cannot be continued another turn is opened, as OpenAI's service and Ollama do it.
 * @param isWhole the answer has a form as a whole: no words stand before it unless the request insists
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function conversationOf(
  given: ValuesOf<typeof conversationFields>,
  isWhole = false,
): Conversation {
  const { messages, continue_final_message: continues, add_generation_prompt: opens } = given;
  const last = messages.at(-1);
  const before = messages.slice(0, -1);
  const isBegun = last?.role === "assistant" && last.toolCalls === undefined;
  const isEmpty = isBegun && last.content === "" && last.reasoning === undefined;
  const problem = isBegun ? whyNotContinued(last, before) : "is not the assistant's words";
  if (continues === true) {
    const field = "continue_final_message";
    const excluded = "excludes add_generation_prompt";
    if (opens === true) throw fieldError("invalid_value", field, excluded, "Send one of the two");
    if (problem !== null && !isEmpty)
      throw fieldError(
        "invalid_value",
        field,
        `cannot be true: the last message ${problem}`,
        "Leave it out",
      );
  }
  if (continues === false) return { messages, prefill: "", openTurn: opens !== false };
  if (isEmpty) return { messages: before, prefill: "", openTurn: true };
  if (!isBegun || problem !== null || (isWhole && continues !== true))
    return { messages, prefill: "", openTurn: opens !== false };
  return { messages: before, prefill: last.content, openTurn: true };
}

export const lastIsUsers = "Let the last message be the user's";

/** What keeps an answer from beginning with a message's words. Null: it can. */
export function whyNotContinued(
  { content, toolCalls, reasoning }: Extract<ChatMessage, { role: "assistant" }>,
  before: readonly ChatMessage[],
): string | null {
  if (toolCalls !== undefined) return "has calls without results";
  if (content === "") return "has no text to continue";
  if (reasoning !== undefined) return "has reasoning, and only text can be continued";
  if (before.at(-1)?.role === "assistant") return "follows another one of the assistant's";
  if (!before.some(({ role }) => role === "user" || role === "tool"))
    return "has no question before it";
  return null;
}

/** Of `chat_template_kwargs`, in characters of JSON: each is made a value of the template's at every rendering. */
const maxVariables = 64 * 1024;

export const reasoningEffort = oneOf(
  ["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"],
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
