/** `system` and `messages` of an Anthropic request as neutral chat messages. */

import type { ChatMessage, ToolCall } from "../../chat/types.ts";
import { lastIsUsers, whyNotContinued } from "../body/prompt.ts";
import { asWritten, exactJson } from "../../json.ts";
import { optional, required, type Type, fieldError } from "../body/field.ts";
import { boolean, list, mapped, notNull, object, record, tagged, text } from "../body/values.ts";
import { blocksOf, resultContent, textBlocks, textContent } from "./blocks.ts";

/** Clients that count what they send put a value that changes with each request first; it would cost the whole cached prefix. */
const billingHeader = /^x-anthropic-billing-header:[^\n]*\n?/;

const asReceived = "Send the call as it was received";
const blockAsReceived = "Send the block as it was received";
const callId = required(text({ min: 1, remedy: asReceived }));

interface ToolResult {
  toolCallId: string;
  content: string;
  /** Of `tool_use_id` in the body. */
  path: string;
}

const toolResult = mapped(
  object(
    { tool_use_id: callId, content: optional(resultContent, "", []), is_error: optional(boolean) },
    blockAsReceived,
    "passed over",
  ),
  ({ tool_use_id: toolCallId, content, is_error: isError }, path): ToolResult => {
    const text = content.join("\n");
    const told = isError === true ? failure(text) : text;
    return { toolCallId, content: told, path: `${path}.tool_use_id` };
  },
);

/** Templates have no place for `is_error`. */
function failure(text: string): string {
  if (text === "") return "Error: the tool failed.";
  return /^error\b/iu.test(text) ? text : `Error: ${text}`;
}

const toolUse = mapped(
  object(
    { id: callId, name: callId, input: optional(record(asReceived), "", {}) },
    blockAsReceived,
    "passed over",
  ),
  ({ id, name, input }): ToolCall => ({ id, name, arguments: exactJson(asWritten(input)) }),
);

const thinking = mapped(
  object(
    { thinking: required(text({ remedy: blockAsReceived })), signature: optional(text()) },
    blockAsReceived,
    "passed over",
  ),
  (block) => ({ reasoning: block.thinking }),
);

const skipped = (kind: string, why: string) =>
  mapped(record(blockAsReceived), (_block, _path, reading) => {
    reading.warn(`messages[].content[].${kind}`, `${why} and is skipped`);
    return { reasoning: "" };
  });

/** What Anthropic's servers did in a conversation that goes on here. */
const serverBlocks = Object.fromEntries(
  [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "container_upload",
  ].map((kind) => [kind, skipped(kind, "is of a tool of Anthropic's servers")]),
);

const userContent = blocksOf({ ...textBlocks, tool_result: toolResult });
const assistantContent = blocksOf({
  ...textBlocks,
  thinking,
  redacted_thinking: skipped("redacted_thinking", "cannot be read"),
  ...serverBlocks,
  tool_use: toolUse,
});
type UserBlock = ReturnType<typeof userContent.read>[number];
type AssistantBlock = ReturnType<typeof assistantContent.read>[number];

const contentRemedy = "Send a string or an array of content blocks";
const needed = <Value>(content: Type<Value>) =>
  required(notNull({ ...content, remedy: contentRemedy }));

const showMessage = 'Send {"role": …, "content": …}';
const user = object({ content: needed(userContent) }, showMessage, "passed over");
const said = mapped(user, ({ content }) => ({ role: "user" as const, content }));

const message = tagged(
  {
    user: said,
    system: said,
    assistant: mapped(
      object({ content: needed(assistantContent) }, showMessage, "passed over"),
      ({ content }) => ({ role: "assistant" as const, content }),
    ),
  },
  {
    tag: "role",
    remedy: showMessage,
    others: {
      code: "invalid_value",
      problem: "is not a known role",
      remedy: "Send user or assistant",
    },
  },
);

export const systemField = optional(
  mapped(textContent, (texts) =>
    texts
      .map((one) => one.replace(billingHeader, ""))
      .filter((one) => one !== "")
      .join("\n\n"),
  ),
  "a string or blocks of text",
  "",
);

export const messagesField = required(
  mapped(
    list(message, { min: 1, remedy: "Send an array with at least one message" }),
    (messages) => {
      const names = new Map<string, string>();
      return {
        count: messages.length,
        messages: messages.flatMap((one) =>
          one.role === "assistant"
            ? [assistantMessage(one.content, names)]
            : userMessages(one.content, names),
        ),
      };
    },
  ),
  "text, documents of text, tool calls and results, thinking; an image in a result becomes a line that says so; a last one of the assistant's begins the answer",
);

export interface ParsedConversation {
  messages: ChatMessage[];
  /** The last message's words if it is the assistant's: the answer begins with them. Else "". */
  prefill: string;
}

/**
 * A system message that does not lead becomes a user message, as in chat completions: moved to the
 * front it would change the first tokens of the prompt.
 * @param list of which `count` came
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function conversationOf(
  system: string,
  { messages: list, count }: { messages: readonly ChatMessage[]; count: number },
): ParsedConversation {
  const messages: ChatMessage[] =
    system === "" ? [...list] : [{ role: "system", content: system }, ...list];
  const last = messages.at(-1);
  if (last?.role !== "assistant") return { messages, prefill: "" };
  const before = messages.slice(0, -1);
  if (last.content === "" && last.toolCalls === undefined && last.reasoning === undefined)
    return { messages: before, prefill: "" };
  const problem = whyNotContinued(last, before);
  if (problem === null) return { messages: before, prefill: last.content };
  throw fieldError("invalid_value", `messages[${count - 1}]`, problem, lastIsUsers);
}

/** Results stay in their place: what is said before and after them is a message of its own. */
function userMessages(
  blocks: readonly UserBlock[],
  names: ReadonlyMap<string, string>,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const block of blocks) {
    const previous = messages.at(-1);
    if (typeof block !== "string") messages.push(namedResult(block, names));
    else if (previous?.role === "user") previous.content += `\n${block}`;
    else messages.push({ role: "user", content: block });
  }
  return messages;
}

function namedResult(
  { toolCallId, content, path }: ToolResult,
  names: ReadonlyMap<string, string>,
): ChatMessage {
  const name = names.get(toolCallId);
  if (name !== undefined) return { role: "tool", toolCallId, name, content };
  const problem = "matches no tool_use block of an earlier assistant message";
  const remedy = `Send the assistant message with its tool_use blocks before their results, as in ${exampleOf(toolCallId)}`;
  throw fieldError("invalid_value", path, problem, remedy);
}

/** A call and its result, as they should be sent. */
function exampleOf(wanted: string): string {
  const id = wanted.slice(0, 100);
  const use = { type: "tool_use", id, name: "…", input: {} };
  const result = { type: "tool_result", tool_use_id: id, content: "…" };
  return JSON.stringify([
    { role: "assistant", content: [use] },
    { role: "user", content: [result] },
  ]);
}

function assistantMessage(
  blocks: readonly AssistantBlock[],
  names: Map<string, string>,
): ChatMessage {
  const toolCalls: ToolCall[] = [];
  let content = "";
  let reasoning = "";
  for (const block of blocks) {
    if (typeof block === "string") content += block;
    else if ("reasoning" in block) reasoning += block.reasoning;
    else {
      names.set(block.id, block.name);
      toolCalls.push(block);
    }
  }
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}
