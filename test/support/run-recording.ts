// Events of a run as the tool loop tells them, for tests that need no engine.
import type { ChatEvent, ToolCall } from "../../src/chat/types.ts";
import type { ToolEvent, ToolOutcome, ToolReport } from "../../src/tools/types.ts";

export type Recorded = ChatEvent | ToolEvent;

export const usage = {
  promptTokens: 20,
  cachedTokens: 12,
  resumedTokens: 5,
  prefilledTokens: 13,
  recomputedTokens: 0,
  generatedTokens: 7,
};

export function call(id: string, name: string, args: object): ToolCall {
  return { id, name, arguments: JSON.stringify(args) };
}

/** As the model writes it, in two pieces. */
export function written(it: ToolCall, index = 0): Recorded[] {
  const middle = Math.ceil(it.arguments.length / 2);
  return [
    { type: "call-start", index, id: it.id, name: it.name },
    { type: "call-arguments", index, delta: it.arguments.slice(0, middle) },
    { type: "call-arguments", index, delta: it.arguments.slice(middle) },
    { type: "call-end", index, call: it },
  ];
}

export function hold(...calls: ToolCall[]): Recorded {
  return { type: "hold", calls, usage };
}

export function started(it: ToolCall, server = "files"): Recorded {
  return { type: "tool-start", call: it, server };
}

export function reported(it: ToolCall, report: ToolReport, server = "agent"): Recorded {
  return { type: "tool-report", call: it, server, report };
}

/** Of the sub-agent that works on the delegation `it`. */
export function within(it: ToolCall, agent: string, event: Recorded): Recorded {
  return reported(it, { type: "agent", agent, event });
}

export function output(it: ToolCall, text: string): Recorded {
  return reported(it, { type: "output", text });
}

export function ended(
  it: ToolCall,
  content: string,
  {
    server = "files",
    outcome = "ok",
    citations = [],
  }: { server?: string; outcome?: ToolOutcome; citations?: string[] } = {},
): Recorded {
  return { type: "tool-end", call: it, server, outcome, content, citations, milliseconds: 12.4 };
}

export function content(text: string): Recorded {
  return { type: "content", text };
}

export const finished: Recorded = { type: "finish", reason: "stop", calls: [], usage };
