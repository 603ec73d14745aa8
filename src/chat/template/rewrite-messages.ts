/**
 * For templates that lack a section for tools, a role, or an order of messages: what they do not take stands in the words
 * of other messages, or as fields of them.
 */

import type { CallSyntax } from "../../guidance/call-syntax.ts";
import { type WrittenCall, writeCalls, writeJson } from "../formats/write-calls.ts";
import type { TemplateShape } from "./template-shape.ts";

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
