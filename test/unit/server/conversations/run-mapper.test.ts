import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyEvent, emptyState } from "../../../../src/client/conversation-state.ts";
import type { ConversationEvent, EndDetail } from "../../../../src/client/types.ts";
import { RunMapper } from "../../../../src/server/conversations/run-mapper.ts";
import {
  call,
  content,
  ended,
  finished,
  hold,
  output,
  type Recorded,
  reported,
  started,
  within,
  written,
} from "../../../support/run-recording.ts";
import { checkStream } from "../../../support/stream-check.ts";

const complete: Omit<EndDetail, "type"> = { status: "complete" };

function stream(recorded: readonly Recorded[], end = complete): ConversationEvent[] {
  const mapper = new RunMapper();
  const told = recorded.map((event, index) => mapper.map(event, 10 * (index + 1)));
  return [mapper.begin(), ...told.filter((event) => event !== null), mapper.end(end)];
}

function callsOf(events: readonly ConversationEvent[]) {
  return events.flatMap((event) => event.tool_calls);
}

const weather = call("c1", "get_weather", { location: "Tokyo" });

test("a plain tool call: before and after, field for field", () => {
  const events = stream([
    content("Let me look."),
    ...written(weather),
    hold(weather),
    started(weather),
    ended(weather, "sunny", { citations: ["weather.txt"] }),
    content("It is sunny."),
    finished,
  ]);
  checkStream(events).close();
  const details = {
    summary: 'get_weather(location: "Tokyo")',
    arguments: '{"location":"Tokyo"}',
    server: "files",
    text_offset: "Let me look.".length,
  };
  expect(callsOf(events)).toEqual([
    {
      call_id: "c1",
      event_type: "call",
      tool_name: "get_weather",
      tool_response: "",
      tool_call_details: details,
      is_complete: true,
    },
    {
      call_id: "c1",
      event_type: "result",
      tool_name: "get_weather",
      tool_response: "sunny",
      tool_call_details: { ...details, milliseconds: 12 },
      is_complete: true,
    },
  ]);
  expect(events.map((event) => event.message).join("")).toBe("Let me look.\n\nIt is sunny.");
  expect(events.flatMap((event) => event.citations)).toEqual(["weather.txt"]);
});

test("a failed call says so, and what the model read of it", () => {
  const events = stream([
    ...written(weather),
    hold(weather),
    started(weather),
    ended(weather, "Error: no such place", { outcome: "error" }),
    finished,
  ]);
  const [, result] = callsOf(events);
  expect(result).toMatchObject({
    event_type: "result",
    tool_response: "Error: no such place",
    tool_call_details: { error: "Error: no such place" },
    is_complete: true,
  });
});

test("a citation is told once", () => {
  const second = call("c2", "get_weather", {});
  const events = stream([
    hold(weather, second),
    started(weather),
    started(second),
    ended(weather, "a", { citations: ["x", "y"] }),
    ended(second, "b", { citations: ["y", "z"] }),
    finished,
  ]);
  expect(events.flatMap((event) => event.citations)).toEqual(["x", "y", "z"]);
});

describe("delegation", () => {
  const task = call("d1", "delegate_research", { agent: "research", task: "Read the notes." });

  test("one call_id from the task to the whole result, parts disjoint", () => {
    const events = stream([
      ...written(task),
      hold(task),
      started(task, "agent"),
      within(task, "research", content("The notes")),
      output(task, "The notes"),
      output(task, " say "),
      ended(task, "The notes say hello.", { server: "agent" }),
      content("Done."),
      finished,
    ]);
    checkStream(events).close();
    const calls = callsOf(events);
    expect(calls.map(({ call_id: id }) => id)).toEqual(["d1", "d1", "d1", "d1"]);
    expect(
      calls.map((it) => [it.event_type, it.stream_part, it.tool_response, it.is_complete]),
    ).toEqual([
      ["delegation_call", undefined, "", true],
      ["delegation_result", "The notes", "", false],
      ["delegation_result", " say ", "", false],
      ["delegation_result", "hello.", "The notes say hello.", true],
    ]);
    expect(calls[0]!.tool_call_details.summary).toBe("Read the notes.");
    expect(calls.at(-1)!.tool_call_details).toMatchObject({ delegate: "research" });
    // A sub-agent's words are its result, no part of the answer.
    expect(events.map((event) => event.message).join("")).toBe("Done.");
  });

  test("what sub-agents call is nested, and ids that two of them give stay apart", () => {
    const other = call("d2", "delegate_writing", { agent: "writing", task: "Write." });
    const inner = call("call_0", "read_file", { path: "a" });
    const events = stream([
      hold(task, other),
      started(task, "agent"),
      started(other, "agent"),
      ...written(inner).map((event) => within(task, "research", event)),
      ...written(inner).map((event) => within(other, "writing", event)),
      within(task, "research", started(inner)),
      within(other, "writing", started(inner)),
      output(other, "B1"),
      within(task, "research", ended(inner, "file a")),
      output(task, "A1"),
      within(other, "writing", ended(inner, "file b")),
      output(other, "B2"),
      ended(other, "B1B2", { server: "agent" }),
      output(task, "A2"),
      ended(task, "A1A2", { server: "agent" }),
      finished,
    ]);
    checkStream(events).close();
    const state = events.reduce(applyEvent, emptyState);
    expect(
      state.toolCalls.map((it) => [it.call_id, it.content, it.tool_call_details.parent_call_id]),
    ).toEqual([
      ["d1", "A1A2", undefined],
      ["d2", "B1B2", undefined],
      ["call_0", "file a", "d1"],
      ["call_0_2", "file b", "d2"],
    ]);
    expect(state.toolCalls[2]!.tool_call_details.agent).toBe("research");
    expect(state.toolCalls.every(({ progress }) => progress === "done")).toBe(true);
  });

  test("a sub-agent that numbers its calls anew in each round", () => {
    const inner = call("call_0", "read_file", {});
    const round = [...written(inner), started(inner), ended(inner, "x")];
    const events = stream([
      hold(task),
      started(task, "agent"),
      ...[...round, ...round].map((event) => within(task, "research", event)),
      ended(task, "ok", { server: "agent" }),
      finished,
    ]);
    checkStream(events).close();
    expect(new Set(callsOf(events).map((it) => it.call_id))).toEqual(
      new Set(["d1", "call_0", "call_0_2"]),
    );
  });

  test("an agent below an agent", () => {
    const deeper = call("d2", "delegate_search", { agent: "search", task: "Search." });
    const search = call("s1", "search", { q: "x" });
    const events = stream([
      hold(task),
      started(task, "agent"),
      within(task, "research", started(deeper, "agent")),
      within(task, "research", within(deeper, "search", started(search))),
      within(task, "research", within(deeper, "search", ended(search, "found"))),
      within(task, "research", output(deeper, "It is")),
      within(task, "research", ended(deeper, "It is there.", { server: "agent" })),
      ended(task, "There.", { server: "agent" }),
      finished,
    ]);
    checkStream(events).close();
    const nesting = callsOf(events).map(({ call_id: id, tool_call_details: it }) => [
      id,
      it.agent,
      it.parent_call_id,
    ]);
    expect(nesting).toContainEqual(["s1", "search", "d2"]);
    expect(nesting).toContainEqual(["d2", "research", "d1"]);
  });

  test("a time-out keeps what came and says why there is no more", () => {
    const inner = call("i1", "read_file", {});
    const events = stream([
      hold(task),
      started(task, "agent"),
      within(task, "research", started(inner)),
      output(task, "Half"),
      ended(task, "Error: the tool did not answer within 60 seconds.", {
        server: "agent",
        outcome: "timeout",
      }),
      finished,
    ]);
    checkStream(events).close();
    const calls = callsOf(events);
    expect(calls.at(-2)).toMatchObject({
      call_id: "i1",
      event_type: "result",
      is_complete: true,
      tool_call_details: { error: expect.any(String) },
    });
    expect(calls.at(-1)).toMatchObject({
      call_id: "d1",
      stream_part: "",
      tool_response: "Half",
      is_complete: true,
      tool_call_details: { error: "Error: the tool did not answer within 60 seconds." },
    });
  });

  test("an interruption ends all that is open, the innermost first", () => {
    const inner = call("i1", "read_file", {});
    const events = stream(
      [
        hold(task),
        started(task, "agent"),
        within(task, "research", started(inner)),
        output(task, "Half"),
      ],
      { status: "cancelled" },
    );
    checkStream(events).close();
    const last = events.at(-1)!;
    expect(last.tool_calls.map((it) => [it.call_id, it.is_complete, it.stream_part])).toEqual([
      ["i1", true, undefined],
      ["d1", true, ""],
    ]);
    expect(last.tool_calls[1]).toMatchObject({
      tool_response: "Half",
      tool_call_details: { error: "The run was cancelled." },
    });
    expect(last.details!.at(-1)).toEqual({ type: "end", status: "cancelled" });
  });
});

describe("details", () => {
  test("a question about a tool that its server has changed says so", () => {
    const ask = { type: "tool-approval", server: "files", state: "asked" } as const;
    const later = call("c2", "get_weather", { location: "Kyoto" });
    const events = stream([
      ...written(weather),
      ...written(later),
      hold(weather, later),
      { ...ask, call: weather },
      { ...ask, call: later, hasChanged: true },
      finished,
    ]);
    const asked = events
      .flatMap((event) => event.details ?? [])
      .filter((detail) => detail.type === "approval");
    expect(asked.map(({ has_changed: changed }) => changed)).toEqual([undefined, true]);
  });

  test("arguments as they are written, states, progress, approval", () => {
    const events = stream([
      { type: "reasoning", text: "Hm." },
      ...written(weather),
      hold(weather),
      { type: "tool-approval", call: weather, server: "files", state: "asked" },
      { type: "tool-approval", call: weather, server: "files", state: "approved" },
      started(weather),
      reported(weather, { type: "progress", message: "half", progress: 1, total: 2 }, "files"),
      ended(weather, "sunny"),
      finished,
    ]);
    checkStream(events).close();
    const details = events
      .flatMap((event) => event.details ?? [])
      .filter(({ type }) => type !== "phase");
    expect(details).toEqual([
      { type: "reasoning", text: "Hm." },
      { type: "arguments", call_id: "c1", tool_name: "get_weather", delta: "" },
      { type: "arguments", call_id: "c1", tool_name: "get_weather", delta: '{"location' },
      { type: "arguments", call_id: "c1", tool_name: "get_weather", delta: '":"Tokyo"}' },
      expect.objectContaining({ type: "approval", state: "asked", arguments: weather.arguments }),
      { type: "state", call_id: "c1", state: "approval" },
      expect.objectContaining({ type: "approval", state: "approved" }),
      { type: "state", call_id: "c1", state: "running" },
      { type: "state", call_id: "c1", state: "running" },
      { type: "progress", call_id: "c1", message: "half", progress: 1, total: 2 },
      { type: "state", call_id: "c1", state: "done", milliseconds: 12 },
      { type: "end", status: "complete" },
    ]);
    // The call is told of when it is asked about, and only then.
    expect(callsOf(events).map((it) => it.event_type)).toEqual(["call", "result"]);
  });

  test("the timeline: prefill, decode, hold, tool, resume, decode", () => {
    const events = stream([
      { type: "progress", done: 0, total: 30, cached: 0 },
      { type: "progress", done: 30, total: 30, cached: 0 },
      ...written(weather),
      hold(weather),
      started(weather),
      ended(weather, "sunny"),
      content("Sunny."),
      finished,
    ]);
    const phases = events
      .flatMap((event) => event.details ?? [])
      .flatMap((detail) => (detail.type === "phase" ? [[detail.phase, detail.at_ms]] : []));
    expect(phases).toEqual([
      ["queued", 0],
      ["prefill", 10],
      ["decode", 30],
      ["hold", 70],
      ["tool", 80],
      ["resume", 90],
      ["decode", 100],
    ]);
  });

  test("a call that was written and never run is over too", () => {
    const state = stream(written(weather).slice(0, 2), { status: "length" }).reduce(
      applyEvent,
      emptyState,
    );
    expect(state.toolCalls).toMatchObject([{ call_id: "c1", progress: "failed" }]);
  });
});

test("whatever calls, parts and ends come in whatever order, the stream is one", () => {
  const step = fc.record({
    kind: fc.constantFrom("start", "output", "agent", "end", "content", "write"),
    id: fc.integer({ min: 0, max: 3 }),
    isAgent: fc.boolean(),
    text: fc.string({ maxLength: 4 }),
    outcome: fc.constantFrom("ok" as const, "error" as const, "cancelled" as const),
  });
  const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const recorded: Recorded[] = [];
    /** Parts of the running calls' results. */
    const running = new Map<string, string>();
    for (const { kind, id, isAgent, text, outcome } of steps) {
      const server = id % 2 === 0 ? "agent" : "files";
      const it = call(`k${id}`, server === "agent" ? "delegate" : "read", { task: "t" });
      const parts = running.get(it.id);
      if (kind === "content") recorded.push(content(text));
      else if (kind === "write") recorded.push(...written(it, id));
      else if (parts === undefined) {
        recorded.push(started(it, server));
        running.set(it.id, "");
      } else if (kind === "agent") {
        recorded.push(within(it, "a", isAgent ? started(call("n", "x", {})) : content("n")));
      } else if (kind === "output") {
        recorded.push(output(it, text));
        running.set(it.id, parts + text);
      } else if (kind === "end") {
        const whole = outcome === "ok" ? parts + text : `Error: ${text}`;
        recorded.push(ended(it, whole, { server, outcome }));
        running.delete(it.id);
      }
    }
    checkStream(stream(recorded)).close();
  });
  fc.assert(property, { numRuns: 300, seed: 7 });
});
