/** Brings a client's history into the shape the model's own output would have. Pure. */

import type { ReasoningMarkers } from "../../guidance/types.ts";
import { isJsonObject, parseJson } from "../../json.ts";
import type { ChatMessage, ToolCall } from "../types.ts";

/**
 * Inline reasoning in an assistant's content moves to `reasoning`: templates look for its markers,
 * which as untrusted text they would not find. Tool messages learn their call's name, and come in the order of the
 * calls: most templates write no ids.
 */
export function normalizeMessages(
  messages: readonly ChatMessage[],
  reasoning: ReasoningMarkers | null,
): ChatMessage[] {
  const names = new Map<string, string>();
  return inCallOrder(messages).map((message): ChatMessage => {
    if (message.role === "assistant") {
      for (const call of message.toolCalls ?? []) names.set(call.id, call.name);
      return reasoning === null || message.reasoning !== undefined
        ? message
        : splitReasoning(message, reasoning);
    }
    if (message.role === "tool" && message.name === undefined) {
      return { ...message, name: names.get(message.toolCallId) };
    }
    return message;
  });
}

/** Clients send results as they come. Those of unknown calls stay behind the others. */
function inCallOrder(messages: readonly ChatMessage[]): ChatMessage[] {
  const ordered: ChatMessage[] = [];
  for (let at = 0; at < messages.length;) {
    const message = messages[at++]!;
    ordered.push(message);
    if (message.role !== "assistant" || (message.toolCalls?.length ?? 0) < 2) continue;
    const places = new Map(message.toolCalls!.map(({ id }, place) => [id, place]));
    const results: [place: number, ChatMessage][] = [];
    for (; messages[at]?.role === "tool"; at++) {
      const result = messages[at] as Extract<ChatMessage, { role: "tool" }>;
      results.push([places.get(result.toolCallId) ?? Infinity, result]);
    }
    // Infinity - Infinity is not a number, and equal places keep their order.
    results.sort(([a], [b]) => (a === b ? 0 : a - b));
    ordered.push(...results.map(([, result]) => result));
  }
  return ordered;
}

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

function splitReasoning(
  message: AssistantMessage,
  { open, close }: ReasoningMarkers,
): AssistantMessage {
  const end = message.content.indexOf(close);
  if (end < 0) return message;
  const head = message.content.slice(0, end).trimStart();
  if (!head.startsWith(open)) return message;
  return {
    ...message,
    reasoning: head.slice(open.length).trim(),
    content: message.content.slice(end + close.length).trimStart(),
  };
}

/**
 * Templates want arguments as an object. Text that is no JSON object (histories replay whatever a
 * model once wrote) stays text. JSON inside a JSON string is unwrapped once.
 */
export function parseArguments(
  text: string,
  parse: (json: string) => unknown = parseJson,
): Record<string, unknown> | string {
  if (text.trim() === "") return {};
  const value = parse(text);
  if (isJsonObject(value)) return value;
  const inner = typeof value === "string" ? parse(value) : undefined;
  return isJsonObject(inner) ? inner : text;
}

/** Equal for JSON texts that say the same, whatever their spaces and the order of their keys. */
export function canonicalArguments(text: string, parse = parseJson): string {
  return JSON.stringify(sortKeys(parseArguments(text, parse)));
}

export function canonicalCalls(
  calls: readonly ToolCall[] | undefined,
): [id: string, name: string, args: string][] {
  return (calls ?? []).map((call) => [call.id, call.name, canonicalArguments(call.arguments)]);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key])]),
  );
}
