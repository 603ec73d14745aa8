/** For templates without a section for tools: tools, calls and results in the words of other messages. */

import type { CallSyntax } from "../../guidance/call-syntax.ts";
import { type WrittenCall, writeCalls, writeJson } from "../formats/write-calls.ts";
import type { TemplateMessage } from "./tool-responses.ts";

/** What a template writes of it by itself. */
export interface GenericToolsOptions {
  syntax: CallSyntax;
  writesCalls: boolean;
  hasToolRole: boolean;
}

/** A call in the template's shape; arguments that are no JSON object are text. */
interface TemplateCall {
  function: { name: string; arguments: Record<string, unknown> | string };
}

/** Tools go into the system message, which is made if there is none. */
export function writeGenericTools(
  messages: readonly TemplateMessage[],
  tools: readonly unknown[],
  { syntax, writesCalls, hasToolRole }: GenericToolsOptions,
): TemplateMessage[] {
  const told = tools.length === 0 ? messages : tellTools(messages, toolPrompt(tools, syntax));
  const called = writesCalls ? told : told.map((message) => withCallsAsText(message, syntax));
  return hasToolRole ? [...called] : joinResults(called);
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
