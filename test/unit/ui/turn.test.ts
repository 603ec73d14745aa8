import { expect, test } from "vitest";
import { argumentEntries, argumentLine } from "../../../ui/src/turn/arguments.ts";
import { segmentsOf } from "../../../ui/src/turn/segments.ts";
import { formatMs, timelineOf } from "../../../ui/src/turn/timeline.ts";
import { applyEvent, callStateOf, emptyTurn, type Turn } from "../../../ui/src/turn/turn.ts";
import type { ConversationEvent, Detail, ToolCallDetails } from "../../../src/client/types.ts";

const told = (turn: Turn, event: Partial<ConversationEvent>): Turn =>
  applyEvent(turn, { message: "", citations: [], tool_calls: [], ...event });
const detailed = (turn: Turn, ...details: Detail[]): Turn => told(turn, { details });

const call = (id: string, details: ToolCallDetails = {}) => ({
  call_id: id,
  event_type: "call" as const,
  tool_name: `tool ${id}`,
  tool_response: "",
  is_complete: true,
  tool_call_details: details,
});

test("text and calls stand in the order in which they came", () => {
  let turn = told(emptyTurn, { message: "Before. " });
  turn = told(turn, { tool_calls: [call("a"), call("b")] });
  turn = told(turn, { message: "Between. " });
  turn = told(turn, { tool_calls: [call("c")] });
  turn = told(turn, { message: "After." });
  const shape = segmentsOf(turn.message, turn.toolCalls).map((segment) =>
    segment.kind === "text" ? segment.text : segment.calls.map(({ call_id: id }) => id),
  );
  expect(shape).toEqual(["Before. ", ["a", "b"], "Between. ", ["c"], "After."]);
});

test("rounds without text between them are one group", () => {
  let turn = told(emptyTurn, { tool_calls: [call("a")] });
  turn = told(turn, { message: "\n\n", tool_calls: [call("b")] });
  expect(segmentsOf(turn.message, turn.toolCalls).map(({ kind }) => kind)).toEqual(["calls"]);
});

test("a call that is open when its turn ends is stopped", () => {
  const turn = told(emptyTurn, { tool_calls: [call("a")] });
  expect(callStateOf(turn.toolCalls[0]!, false)).toBe("running");
  expect(callStateOf(turn.toolCalls[0]!, true)).toBe("stopped");
});

test("arguments are shown as they are until they are whole", () => {
  expect(argumentEntries('{"path":"no')).toBe(null);
  expect(argumentEntries('{"path":"notes.txt","lines":[1,2]}')).toEqual([
    ["path", "notes.txt"],
    ["lines", "[\n  1,\n  2\n]"],
  ]);
  expect(argumentEntries("[1]")).toBe(null);
  expect(argumentLine('{"path":"notes.txt","n":1}')).toBe("path: notes.txt, n: 1");
  expect(argumentLine('{"path":"a\u202Eb"}')).toBe("path: a‹U+202E›b");
});

test("a timeline has the sequence's phases one after another and each tool beside them", () => {
  let turn = detailed(
    emptyTurn,
    { type: "phase", phase: "prefill", at_ms: 0, tokens: 400 },
    { type: "phase", phase: "decode", at_ms: 100 },
    { type: "phase", phase: "hold", at_ms: 150 },
    { type: "phase", phase: "tool", at_ms: 151, call_id: "a" },
    { type: "phase", phase: "resume", at_ms: 350, tokens: 20 },
    { type: "phase", phase: "decode", at_ms: 360 },
  );
  turn = told(turn, { tool_calls: [call("a", { milliseconds: 198 })] });
  const { sequence, tools, endMs } = timelineOf(turn.timeline, turn.toolCalls, 500);
  expect(sequence.map(({ phase, startMs, endMs: end }) => [phase, startMs, end])).toEqual([
    ["prefill", 0, 100],
    ["decode", 100, 150],
    ["hold", 150, 350],
    ["resume", 350, 360],
    ["decode", 360, 500],
  ]);
  expect(tools).toEqual([
    { phase: "tool", startMs: 151, endMs: 349, tokens: null, label: "tool a" },
  ]);
  expect(endMs).toBe(500);
});

test("durations are told as people say them", () => {
  expect([0.2, 12.4, 1250, 61_000].map(formatMs)).toEqual(["<1 ms", "12 ms", "1.3 s", "1 min 1 s"]);
});

test("delegations stand apart from tools", () => {
  let turn = told(emptyTurn, { tool_calls: [call("a")] });
  turn = told(turn, { tool_calls: [{ ...call("b"), event_type: "delegation_call" }] });
  const sizes = segmentsOf(turn.message, turn.toolCalls).map((segment) =>
    segment.kind === "calls" ? segment.calls.length : 0,
  );
  expect(sizes).toEqual([1, 1]);
});
