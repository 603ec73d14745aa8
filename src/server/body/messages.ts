/** `messages` of a chat completion as neutral chat messages. */

import type { ChatMessage } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "./fields.ts";
import { parseContent, parseRequiredContent } from "./content.ts";
import { parseToolCalls } from "./tool-calls.ts";
import type { Warn } from "./warnings.ts";

const keysByRole: Record<string, readonly string[]> = {
  system: ["role", "content"],
  developer: ["role", "content"],
  user: ["role", "content"],
  assistant: [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "reasoning",
    "reasoning_content",
    "function_call",
    "audio",
  ],
  tool: ["role", "content", "tool_call_id", "name"],
};

/**
 * Developer means system. The system messages that lead are merged into one, since templates take one
 * and want it first. A later one keeps its place and becomes a user message: moving it to the front
 * would change the first tokens of the prompt and so lose the whole cached prefix.
 */
export function parseMessages(value: unknown, warn: Warn): ChatMessage[] {
  if (value === undefined)
    throw fieldError(
      "missing_field",
      "messages",
      "is missing",
      "Send an array with at least one message",
    );
  if (!Array.isArray(value)) {
    throw fieldError(
      "invalid_type",
      "messages",
      `must be an array, not ${kindOf(value)}`,
      "Send an array of messages",
    );
  }
  if (value.length === 0)
    throw fieldError("invalid_value", "messages", "is empty", "Send at least one message");

  const messages: ChatMessage[] = [];
  const callNames = new Map<string, string>();
  value.forEach((entry: unknown, index) => {
    const message = parseMessage(entry, `messages[${index}]`, callNames, warn);
    const previous = messages.at(-1);
    if (message.role === "system" && previous !== undefined) {
      const leads = messages.every(({ role }) => role === "system");
      if (leads)
        messages.splice(0, 1, {
          role: "system",
          content: `${previous.content}\n\n${message.content}`,
        });
      else messages.push({ role: "user", content: message.content });
    } else {
      messages.push(message);
    }
  });
  return messages;
}

function parseMessage(
  entry: unknown,
  field: string,
  callNames: Map<string, string>,
  warn: Warn,
): ChatMessage {
  if (!isObject(entry)) {
    throw fieldError(
      "invalid_type",
      field,
      `must be an object, not ${kindOf(entry)}`,
      'Send {"role": …, "content": …}',
    );
  }
  const role = readRole(entry, field);
  for (const key of Object.keys(entry)) {
    if (!keysByRole[role]!.includes(key)) warn(`messages[].${key}`, "is not used");
  }
  const content = `${field}.content`;
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", content: parseRequiredContent(entry["content"], content) };
    case "user":
      return { role: "user", content: parseRequiredContent(entry["content"], content) };
    case "tool":
      return parseToolMessage(entry, field, callNames);
    default:
      return parseAssistant(entry, field, callNames);
  }
}

function readRole(entry: JsonObject, field: string): string {
  const { role } = entry;
  const remedy = "Send system, developer, user, assistant or tool";
  if (role === undefined) {
    // Without its role a model would not see the result, and would call the tool again and again.
    if (typeof entry["tool_call_id"] === "string") throw roleless(entry["tool_call_id"], field);
    throw fieldError("missing_field", `${field}.role`, "is missing", remedy);
  }
  if (typeof role !== "string")
    throw fieldError(
      "invalid_type",
      `${field}.role`,
      `must be a string, not ${kindOf(role)}`,
      remedy,
    );
  if (role === "function") {
    throw fieldError(
      "unsupported_value",
      `${field}.role`,
      'is "function", which was replaced',
      'Send role "tool" with tool_call_id',
    );
  }
  if (!Object.hasOwn(keysByRole, role))
    throw fieldError("invalid_value", `${field}.role`, "is not a known role", remedy);
  return role;
}

function roleless(callId: string, field: string): Error {
  const problem = "is missing from what looks like a tool's result";
  const [, corrected] = roundOf(callId);
  return fieldError("missing_field", `${field}.role`, problem, `Send ${JSON.stringify(corrected)}`);
}

/** A call and its result, as they should be sent. */
function roundOf(callId: string): [object, object] {
  const id = callId.slice(0, 100);
  const call = { id, type: "function", function: { name: "…", arguments: "…" } };
  return [
    { role: "assistant", tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: "…" },
  ];
}

function parseToolMessage(
  entry: JsonObject,
  field: string,
  callNames: Map<string, string>,
): ChatMessage {
  const id = entry["tool_call_id"];
  const idField = `${field}.tool_call_id`;
  if (isAbsent(id))
    throw fieldError(
      "missing_field",
      idField,
      "is missing",
      "Send the id of the tool call that this answers",
    );
  if (typeof id !== "string")
    throw fieldError(
      "invalid_type",
      idField,
      `must be a string, not ${kindOf(id)}`,
      "Send the call's id",
    );
  const name = callNames.get(id);
  if (name === undefined) {
    throw fieldError(
      "invalid_value",
      idField,
      "matches no tool call of an earlier assistant message",
      `Send the assistant message with its tool_calls before their results, as in ${JSON.stringify(roundOf(id))}`,
    );
  }
  return {
    role: "tool",
    toolCallId: id,
    name,
    content: parseContent(entry["content"], `${field}.content`),
  };
}

function parseAssistant(
  entry: JsonObject,
  field: string,
  callNames: Map<string, string>,
): ChatMessage {
  if (!isAbsent(entry["function_call"])) {
    throw fieldError(
      "unsupported_value",
      `${field}.function_call`,
      "was replaced",
      "Send tool_calls",
    );
  }
  if (!isAbsent(entry["audio"])) {
    throw fieldError(
      "unsupported_value",
      `${field}.audio`,
      "is audio, and the model reads text only",
      "Send its transcript as content",
    );
  }
  const reasoningKey = isAbsent(entry["reasoning_content"]) ? "reasoning" : "reasoning_content";
  const reasoning = parseContent(entry[reasoningKey], `${field}.${reasoningKey}`);
  const content =
    parseContent(entry["content"], `${field}.content`) ||
    parseContent(entry["refusal"], `${field}.refusal`);
  const toolCalls = parseToolCalls(entry["tool_calls"], `${field}.tool_calls`);
  for (const call of toolCalls) callNames.set(call.id, call.name);
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
  };
}
