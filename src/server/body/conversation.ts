/** The messages of a request, and how the prompt made of them ends. */

import type { ChatMessage, PromptRequest } from "../../chat/types.ts";
import { fieldError, readBoolean, type JsonObject } from "./fields.ts";
import { parseMessages } from "./messages.ts";
import type { Warn } from "./warnings.ts";

/** `prefill` is "" where the answer begins with the model's own words. */
export type Conversation = Pick<PromptRequest, "messages" | "openTurn"> & { prefill: string };

/**
 * A last message of the assistant's is continued, as llama-server does it, unless `continue_final_message` is
 * false. Calls cannot be continued: behind them, another turn is opened.
 * @throws FermataError of status 400 whose `param` is the field at fault
 */
export function readConversation(body: JsonObject, warn: Warn): Conversation {
  const messages = parseMessages(body["messages"], warn);
  const last = messages.at(-1);
  const continues = readBoolean(body, "continue_final_message", null);
  const opens = readBoolean(body, "add_generation_prompt", null);
  if (continues === true) {
    const field = "continue_final_message";
    if (opens === true)
      throw fieldError(
        "invalid_value",
        field,
        "excludes add_generation_prompt",
        "Send one of the two",
      );
    const isText = last?.role === "assistant" && last.toolCalls === undefined;
    const problem = "needs a last message that is the assistant's and has no calls";
    if (!isText) throw fieldError("invalid_value", field, problem, "Leave it out");
  }
  const isBegun = last?.role === "assistant" && last.toolCalls === undefined;
  if (!isBegun || continues === false) return { messages, prefill: "", openTurn: opens !== false };
  const before = messages.slice(0, -1);
  if (last.content === "" && last.reasoning === undefined)
    return { messages: before, prefill: "", openTurn: true };
  const field = `messages[${(body["messages"] as unknown[]).length - 1}]`;
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
