import { expect, test } from "vitest";
import { AnswerPrinter } from "../../../src/cli/chat/answer-printer.ts";
import { Screen } from "../../../src/cli/chat/screen.ts";
import type { ConversationEvent, ToolCallResponse } from "../../../src/client/index.ts";

function printer({ isTTY = false, columns = 80, env = {} as NodeJS.ProcessEnv } = {}) {
  let output = "";
  const stream = { write: (text: string) => (output += text), isTTY, columns };
  const screen = new Screen(stream, env);
  const options = { text: screen, cards: screen, showReasoning: false };
  return { printer: new AnswerPrinter(options, () => 0), output: () => output, stream };
}

const say = (message: string): ConversationEvent => ({ message, citations: [], tool_calls: [] });
function call(response: Partial<ToolCallResponse>): ConversationEvent {
  const base = { call_id: "c", event_type: "call", tool_name: "t", tool_response: "" } as const;
  const rest = { tool_call_details: {}, is_complete: false };
  return { message: "", citations: [], tool_calls: [{ ...base, ...rest, ...response }] };
}

test("two sub-agents side by side: whole lines, each under its name, their calls indented", () => {
  const { printer: it, output } = printer();
  const delegate = (id: string, name: string): ConversationEvent =>
    call({
      call_id: id,
      event_type: "delegation_call",
      tool_name: "delegate",
      tool_call_details: { delegate: name, summary: `ask ${name}` },
    });
  const part = (id: string, text: string): ConversationEvent =>
    call({
      call_id: id,
      event_type: "delegation_result",
      tool_name: "delegate",
      stream_part: text,
    });
  it.apply(say("Let me ask."));
  it.apply(delegate("a", "reader"));
  it.apply(delegate("b", "writer"));
  it.apply(part("a", "one "));
  it.apply(part("b", "eins\nzwei"));
  it.apply(part("a", "line\n"));
  const nested = { agent: "reader", parent_call_id: "a", arguments: '{"path": "x"}' };
  it.apply(call({ call_id: "n", tool_name: "read", tool_call_details: nested }));
  const result = { event_type: "result", tool_response: "text", is_complete: true } as const;
  it.apply(
    call({ call_id: "n", tool_name: "read", ...result, tool_call_details: { milliseconds: 1200 } }),
  );
  it.apply(
    call({
      call_id: "b",
      event_type: "delegation_result",
      tool_name: "delegate",
      is_complete: true,
      tool_response: "eins\nzwei",
    }),
  );
  it.end();
  expect(output().split("\n")).toEqual([
    "Let me ask.",
    "* delegate -> reader ask reader",
    "* delegate -> writer ask writer",
    "  writer: eins",
    "  reader: one line",
    '    * read {"path": "x"}',
    "      done: read, 1.2 s",
    "      | text",
    "  writer: zwei",
    "  done: delegate",
    "",
  ]);
});

test("what a model writes draws nothing but its characters on a terminal, and is left alone in a pipe", () => {
  const hostile = "a\u001b]0;title\u0007\u001b[2Jb\u202ec\u009bd\re\n";
  const terminal = printer({ isTTY: true, env: { NO_COLOR: "1" } });
  terminal.printer.apply(say(hostile));
  expect(terminal.output()).toContain("a]0;titlebcde\n");
  const pipe = printer();
  pipe.printer.apply(say(hostile));
  expect(pipe.output()).toBe(hostile);
});

test("cards and the status line keep to the width of the moment", () => {
  const { printer: it, output, stream } = printer({ isTTY: true, env: { NO_COLOR: "1" } });
  stream.columns = 30;
  it.apply(call({ tool_call_details: { arguments: `{"text": "${"long ".repeat(30)}"}` } }));
  it.apply(call({ event_type: "result", is_complete: true, tool_response: "漢".repeat(60) }));
  // oxlint-disable-next-line no-control-regex
  const lines = output()
    .replaceAll("\u001b[K", "")
    .split(/[\r\n]+/);
  const width = (line: string): number => [...line].length + (line.match(/漢/g)?.length ?? 0);
  for (const line of lines) expect(width(line)).toBeLessThanOrEqual(30);
  expect(output()).toContain("...");
});

test("a failure and a denial say so", () => {
  const { printer: it, output } = printer();
  it.apply(
    call({
      call_id: "x",
      event_type: "result",
      is_complete: true,
      tool_call_details: { error: "no such file" },
    }),
  );
  it.apply(
    call({
      call_id: "y",
      event_type: "result",
      is_complete: true,
      tool_call_details: { approval: "denied", error: "denied" },
    }),
  );
  it.apply({
    ...say(""),
    details: [
      { type: "end", status: "failed", error: { message: "engine died", code: "engine_crashed" } },
    ],
  });
  it.end();
  expect(output()).toContain("failed: t\n  | no such file\n");
  expect(output()).toContain("denied: t\n");
  expect(output()).toContain("Failed: engine died\n");
});
