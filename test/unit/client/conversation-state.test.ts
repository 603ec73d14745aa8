import { expect, test } from "vitest";
import {
  applyEvent,
  callsWithin,
  emptyState,
  stateOfMessage,
} from "../../../src/client/conversation-state.ts";
import type { ConversationEvent, ToolCallResponse } from "../../../src/client/types.ts";

function event(call: Partial<ToolCallResponse>, message = ""): ConversationEvent {
  return {
    message,
    citations: [],
    tool_calls: [
      {
        call_id: "d",
        event_type: "delegation_result",
        tool_name: "delegate",
        tool_response: "",
        tool_call_details: {},
        is_complete: false,
        ...call,
      },
    ],
  };
}

const streamed: ConversationEvent[] = [
  event({
    event_type: "delegation_call",
    is_complete: true,
    tool_call_details: { summary: "task" },
  }),
  event({ stream_part: "ab" }),
  event({ stream_part: "cd" }),
  event({ stream_part: "e", tool_response: "abcde", is_complete: true }),
];

test("a delegation becomes its result: text, type and completion", () => {
  const states = streamed.map((_, index) =>
    streamed.slice(0, index + 1).reduce(applyEvent, emptyState),
  );
  const calls = states.map(({ toolCalls }) => toolCalls[0]!);
  expect(calls.map((call) => call.event_type)).toEqual([
    "delegation_call",
    "delegation_result",
    "delegation_result",
    "delegation_result",
  ]);
  expect(calls.map((call) => call.content)).toEqual(["", "ab", "abcd", "abcde"]);
  expect(calls.map((call) => call.is_streaming)).toEqual([false, true, true, false]);
  expect(calls.map((call) => call.progress)).toEqual(["running", "running", "running", "done"]);
  expect(calls.at(-1)).toMatchObject({
    tool_response: "abcde",
    tool_call_details: { summary: "task" },
  });
});

test("an interruption keeps what came, and its error", () => {
  const cut = event({
    stream_part: "",
    tool_response: "ab",
    is_complete: true,
    tool_call_details: { error: "cancelled" },
  });
  const [call] = [streamed[0]!, streamed[1]!, cut].reduce(applyEvent, emptyState).toolCalls;
  expect(call).toMatchObject({ content: "ab", progress: "failed", is_complete: true });
  expect(call!.tool_call_details).toEqual({ summary: "task", error: "cancelled", text_offset: 0 });
});

test("a state never changes under its holder", () => {
  const before = streamed.slice(0, 2).reduce(applyEvent, emptyState);
  const copy = structuredClone(before);
  applyEvent(before, streamed[2]!);
  expect(before).toEqual(copy);
  expect(emptyState).toEqual({ ...copy, message: "", toolCalls: [], timeline: [] });
});

test("reasoning of sub-agents stays with their delegation", () => {
  const state = [
    streamed[0]!,
    {
      ...event({}),
      tool_calls: [],
      details: [
        { type: "reasoning" as const, text: "I" },
        { type: "reasoning" as const, text: "they", agent: "a", parent_call_id: "d" },
      ],
    },
  ].reduce(applyEvent, emptyState);
  expect(state.reasoning).toBe("I");
  expect(callsWithin(state, null)).toMatchObject([{ call_id: "d", reasoning: "they" }]);
  expect(callsWithin(state, "d")).toEqual([]);
});

test("a stored message has the state that its events had", () => {
  const end = { type: "end" as const, status: "complete" as const };
  const state = [
    ...streamed,
    { ...event({}, "Done."), tool_calls: [], citations: ["x"], details: [end] },
  ].reduce(applyEvent, emptyState);
  const stored = stateOfMessage({
    id: "m",
    parent_id: null,
    role: "assistant",
    message: "Done.",
    files: [],
    reasoning: "",
    citations: ["x"],
    tool_calls: [
      {
        call_id: "d",
        event_type: "delegation_result",
        tool_name: "delegate",
        tool_response: "abcde",
        tool_call_details: { summary: "task", text_offset: 0 },
        is_complete: true,
      },
    ],
    status: "complete",
    error: null,
    run_id: "r",
    created_at: 0,
    usage: null,
    timeline: [],
  });
  expect(stored).toEqual(state);
});
