/** Brings a client's history into the shape the model's own output would have, and then into the one that the template takes. Pure. */

import type { ReasoningMarkers } from "../../guidance/types.ts";
import { isJsonObject, parseJson } from "../../json.ts";
import type { ChatMessage, ToolCall } from "../types.ts";
import type { CallSyntax } from "../../guidance/call-syntax.ts";
import { type WrittenCall, writeCalls, writeJson } from "../formats/write-calls.ts";
import type { TemplateShape } from "./template-shape.ts";

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

/** A call in the template's shape; arguments that are no JSON object are text. */
interface TemplateCall {
  id: string;
  function: { name: string; arguments: Record<string, unknown> | string };
}

/** @param syntax how calls are written where the template has no section for tools */
export function rewriteMessages(
  messages: readonly TemplateMessage[],
  tools: readonly unknown[],
  shape: TemplateShape,
  syntax: CallSyntax,
): readonly TemplateMessage[] {
  const isGeneric = shape.toolInput === null;
  const told = isGeneric ? writeGenericTools(messages, tools, shape, syntax) : messages;
  const joined = shape.joinsToolResults ? joinToolResults(told) : told;
  return joinUsers(shape.hasSystemRole ? joined : mergeSystem(joined), shape);
}

/** Tools go into the system message, which is made if there is none. */
function writeGenericTools(
  messages: readonly TemplateMessage[],
  tools: readonly unknown[],
  { writesCalls, hasToolRole }: TemplateShape,
  syntax: CallSyntax,
): readonly TemplateMessage[] {
  const told = tools.length === 0 ? messages : tellTools(messages, toolPrompt(tools, syntax));
  const called = writesCalls ? told : told.map((message) => withCallsAsText(message, syntax));
  return hasToolRole ? called : joinResults(called);
}

function toolPrompt(tools: readonly unknown[], syntax: CallSyntax): string {
  const lines = tools.map((tool) => writeJson(tool, ", ", ": "));
  const example = writeCalls(syntax, [["<function-name>", { "<argument>": "<value>" }]]);
  return `# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
${lines.join("\n")}
</tools>

For each function call, write its name and its arguments in this form:
${example.trim()}`;
}

function tellTools(messages: readonly TemplateMessage[], prompt: string): TemplateMessage[] {
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: prompt }, ...messages];
  return [{ ...first, content: joinTexts([first.content, prompt], "\n\n") }, ...rest];
}

function withCallsAsText(message: TemplateMessage, syntax: CallSyntax): TemplateMessage {
  const { tool_calls: calls, ...rest } = message;
  if (!Array.isArray(calls)) return message;
  const written = (calls as TemplateCall[]).map(
    ({ function: { name, arguments: args } }): WrittenCall => [name, args],
  );
  return {
    ...rest,
    role: rest.role,
    content: joinTexts([rest.content, writeCalls(syntax, written)], "\n"),
  };
}

/** The results of a turn, and what the user says after them, are one message: some templates insist on turns. */
function joinResults(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const joined: TemplateMessage[] = [];
  let results: string[] = [];
  const flush = (after: unknown): void => {
    const content = joinTexts([results.join("\n"), after], "\n\n");
    joined.push({ role: "user", content });
    results = [];
  };
  for (const message of messages) {
    if (message.role === "tool")
      results.push(`<tool_response>\n${String(message.content)}\n</tool_response>`);
    else if (results.length > 0 && message.role === "user") flush(message.content);
    else {
      if (results.length > 0) flush("");
      joined.push(message);
    }
  }
  if (results.length > 0) flush("");
  return joined;
}

/** Without those that are empty. */
function joinTexts(parts: readonly unknown[], separator: string): string {
  return parts
    .map(String)
    .filter((text) => text !== "")
    .join(separator);
}

export interface TemplateMessage {
  role: string;
  content: unknown;
  [field: string]: unknown;
}

/**
 * Tool messages as a field of the message whose calls they answer: calls, their results and the answer after them become one message, with the answer's text: the template
 * writes a message's content behind its results.
 */
function joinToolResults(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const joined: TemplateMessage[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    const calls = callsOf(message);
    if (calls.length === 0) {
      joined.push(message);
      continue;
    }
    const results: unknown[] = [];
    for (; messages[at + 1]?.role === "tool"; at++)
      results.push(responseOf(messages[at + 1]!, calls, results.length));
    const answer = messages[at + 1];
    const isAnswered =
      answer?.role === "assistant" && callsOf(answer).length === 0 && answer.content !== "";
    if (isAnswered) at += 1;
    joined.push({
      ...message,
      content: isAnswered ? answer.content : "",
      ...(results.length === 0 ? {} : { tool_responses: results }),
    });
  }
  return joined;
}

function callsOf(message: TemplateMessage): readonly TemplateCall[] {
  const calls = message["tool_calls"];
  return message.role === "assistant" && Array.isArray(calls) ? (calls as TemplateCall[]) : [];
}

function responseOf(
  { tool_call_id: id, content }: TemplateMessage,
  calls: readonly TemplateCall[],
  index: number,
): { name: unknown; response: unknown } {
  const call = calls.find((candidate) => candidate.id === id) ?? calls[index];
  return { name: call?.function.name ?? id, response: content };
}

/** The system messages that lead as one: many templates take one, and that first. */
export function joinSystems<Message extends { role: string }>(
  messages: readonly Message[],
): readonly Message[] {
  const count = countSystems(messages);
  if (count < 2) return messages;
  const leading = messages.slice(0, count) as (Message & { content: string })[];
  const content = leading.map((one) => one.content).join("\n\n");
  return [{ ...leading[0]!, content }, ...messages.slice(count)];
}

/** How many system messages lead. */
export function countSystems(messages: readonly { role: string }[]): number {
  const first = messages.findIndex(({ role }) => role !== "system");
  return first < 0 ? messages.length : first;
}

/** A system message's text begins the message after it. */
function mergeSystem(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const [first, second, ...rest] = messages;
  if (first?.role !== "system" || second === undefined) return messages;
  return [{ ...second, content: `${String(first.content)}\n${String(second.content)}` }, ...rest];
}

/** Clients send several users' messages in a row, and one behind results; some templates refuse that. */
function joinUsers(
  messages: readonly TemplateMessage[],
  { takesUsersInRow, takesUserBehindResults }: TemplateShape,
): readonly TemplateMessage[] {
  if (takesUsersInRow && takesUserBehindResults) return messages;
  const joined: TemplateMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    const isJoined =
      message.role === "user" &&
      ((last?.role === "user" && !takesUsersInRow) ||
        (last?.role === "tool" && !takesUserBehindResults));
    if (isJoined && last !== undefined) {
      const content = `${String(last.content)}\n\n${String(message.content)}`;
      joined[joined.length - 1] = { ...last, content };
    } else joined.push(message);
  }
  return joined;
}
