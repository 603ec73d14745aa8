/** `system` and `messages` of an Anthropic request as neutral chat messages. */

import type { ChatMessage, ToolCall } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "../body/fields.ts";
import { lastIsUsers, prefillOf } from "../body/conversation.ts";
import type { Warn } from "../body/warnings.ts";
import { blocksOf, parseText, typeOf } from "./blocks.ts";

/** Clients that count what they send put a value that changes with each request first; it would cost the whole cached prefix. */
const billingHeader = /^x-anthropic-billing-header:[^\n]*\n?/;

const roles = ["user", "assistant", "system"] as const;

export interface ParsedConversation {
  messages: ChatMessage[];
  /** The last message's words if it is the assistant's: the answer begins with them. Else "". */
  prefill: string;
}

/**
 * A system message that does not lead becomes a user message, as in chat completions: moved to the
 * front it would change the first tokens of the prompt.
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function parseConversation(body: JsonObject, warn: Warn): ParsedConversation {
  const messages: ChatMessage[] = [];
  const system = parseSystem(body["system"]);
  if (system !== "") messages.push({ role: "system", content: system });
  const list = body["messages"];
  if (!Array.isArray(list)) {
    const code = list === undefined ? "missing_field" : "invalid_type";
    const problem = list === undefined ? "is missing" : `must be an array, not ${kindOf(list)}`;
    throw fieldError(code, "messages", problem, "Send an array of messages");
  }
  if (list.length === 0)
    throw fieldError("invalid_value", "messages", "is empty", "Send at least one message");
  const callNames = new Map<string, string>();
  list.forEach((entry: unknown, index) => {
    messages.push(...parseMessage(entry, `messages[${index}]`, callNames, warn));
  });
  return takePrefill(messages, `messages[${list.length - 1}]`);
}

function takePrefill(messages: ChatMessage[], field: string): ParsedConversation {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return { messages, prefill: "" };
  const before = messages.slice(0, -1);
  return { messages: before, prefill: prefillOf(last, before, field, lastIsUsers) };
}

function parseSystem(value: unknown): string {
  if (isAbsent(value)) return "";
  return blocksOf(value, "system")
    .map((block, index) => {
      const field = typeof value === "string" ? "system" : `system[${index}]`;
      return typeof block === "string" ? block : parseText(block, field);
    })
    .map((text) => text.replace(billingHeader, ""))
    .filter((text) => text !== "")
    .join("\n\n");
}

function parseMessage(
  entry: unknown,
  field: string,
  callNames: Map<string, string>,
  warn: Warn,
): ChatMessage[] {
  if (!isObject(entry)) {
    const remedy = 'Send {"role": …, "content": …}';
    throw fieldError("invalid_type", field, `must be an object, not ${kindOf(entry)}`, remedy);
  }
  const role = readRole(entry["role"], `${field}.role`);
  const contentField = `${field}.content`;
  if (isAbsent(entry["content"])) {
    const remedy = "Send a string or an array of content blocks";
    throw fieldError("missing_field", contentField, "is missing", remedy);
  }
  const blocks = blocksOf(entry["content"], contentField);
  const place = (index: number): string =>
    typeof entry["content"] === "string" ? contentField : `${contentField}[${index}]`;
  if (role === "assistant") return [parseAssistant(blocks, place, callNames, warn)];
  return parseUser(blocks, place, callNames);
}

function readRole(value: unknown, field: string): (typeof roles)[number] {
  const role = roles.find((known) => known === value);
  if (role !== undefined) return role;
  const code =
    value === undefined
      ? "missing_field"
      : typeof value === "string"
        ? "invalid_value"
        : "invalid_type";
  const problem = value === undefined ? "is missing" : "is not a known role";
  throw fieldError(code, field, problem, "Send user or assistant");
}

/** Results stay in their place: what is said before and after them is a message of its own. */
function parseUser(
  blocks: (string | JsonObject)[],
  place: (index: number) => string,
  callNames: Map<string, string>,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  blocks.forEach((block, index) => {
    const field = place(index);
    if (typeof block !== "string" && typeOf(block, field) === "tool_result") {
      messages.push(parseToolResult(block, field, callNames));
      return;
    }
    const text = typeof block === "string" ? block : parseText(block, field);
    const previous = messages.at(-1);
    if (previous?.role === "user") previous.content += `\n${text}`;
    else messages.push({ role: "user", content: text });
  });
  return messages;
}

/** A call and its result, as they should be sent. */
function exampleOf(callId: string): string {
  const id = callId.slice(0, 100);
  const use = { type: "tool_use", id, name: "…", input: {} };
  const result = { type: "tool_result", tool_use_id: id, content: "…" };
  return JSON.stringify([
    { role: "assistant", content: [use] },
    { role: "user", content: [result] },
  ]);
}

function parseToolResult(
  block: JsonObject,
  field: string,
  callNames: Map<string, string>,
): ChatMessage {
  const id = readId(block["tool_use_id"], `${field}.tool_use_id`);
  const name = callNames.get(id);
  if (name === undefined) {
    throw fieldError(
      "invalid_value",
      `${field}.tool_use_id`,
      "matches no tool_use block of an earlier assistant message",
      `Send the assistant message with its tool_use blocks before their results, as in ${exampleOf(id)}`,
    );
  }
  const isError = block["is_error"];
  if (!isAbsent(isError) && typeof isError !== "boolean") {
    const problem = `must be a boolean, not ${kindOf(isError)}`;
    throw fieldError("invalid_type", `${field}.is_error`, problem, "Send true or false");
  }
  const { content } = block;
  const contentField = `${field}.content`;
  const text = isAbsent(content)
    ? ""
    : blocksOf(content, contentField)
        .map((part, index) =>
          typeof part === "string" ? part : parseText(part, `${contentField}[${index}]`),
        )
        .join("\n");
  return { role: "tool", toolCallId: id, name, content: text };
}

function parseAssistant(
  blocks: (string | JsonObject)[],
  place: (index: number) => string,
  callNames: Map<string, string>,
  warn: Warn,
): ChatMessage {
  let content = "";
  let reasoning = "";
  const toolCalls: ToolCall[] = [];
  blocks.forEach((block, index) => {
    const field = place(index);
    if (typeof block === "string") {
      content += block;
      return;
    }
    switch (typeOf(block, field)) {
      case "thinking":
        reasoning += readString(block["thinking"], `${field}.thinking`);
        break;
      case "redacted_thinking":
        warn("messages[].content[].redacted_thinking", "cannot be read and is skipped");
        break;
      case "tool_use": {
        const call = parseToolUse(block, field);
        callNames.set(call.id, call.name);
        toolCalls.push(call);
        break;
      }
      default:
        content += parseText(block, field);
    }
  });
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}

function parseToolUse(block: JsonObject, field: string): ToolCall {
  const { input } = block;
  if (!isAbsent(input) && !isObject(input)) {
    const problem = `must be an object, not ${kindOf(input)}`;
    throw fieldError("invalid_type", `${field}.input`, problem, "Send the call as it was received");
  }
  return {
    id: readId(block["id"], `${field}.id`),
    name: readId(block["name"], `${field}.name`),
    arguments: JSON.stringify(input ?? {}),
  };
}

function readId(value: unknown, field: string): string {
  const id = readString(value, field);
  if (id === "")
    throw fieldError("invalid_value", field, "is empty", "Send the call as it was received");
  return id;
}

function readString(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  const code = value === undefined ? "missing_field" : "invalid_type";
  const problem = `must be a string, not ${kindOf(value)}`;
  throw fieldError(code, field, problem, "Send the block as it was received");
}
