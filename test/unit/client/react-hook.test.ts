// The hooks in a real React, its document a simulated one (happy-dom).
import { Window } from "happy-dom";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ConversationEvent } from "../../../src/client/types.ts";
import { RunMapper } from "../../../src/server/conversations/run-mapper.ts";
import {
  call,
  content,
  ended,
  finished,
  hold,
  output,
  started,
  within,
  written,
} from "../../support/run-recording.ts";

const task = call("d1", "research", { agent: "researcher", task: "Read." });
const other = call("d2", "writing", { agent: "writer", task: "Write." });
const inner = call("i1", "search", {});

function events(): ConversationEvent[] {
  const mapper = new RunMapper();
  const recorded = [
    content("I ask."),
    ...written(task),
    hold(task, other),
    started(task, "agent"),
    started(other, "agent"),
    within(task, "researcher", started(inner)),
    output(task, "The notes "),
    output(other, "A "),
    within(task, "researcher", ended(inner, "found")),
    output(task, "say "),
    ended(other, "A line.", { server: "agent" }),
    ended(task, "The notes say hello.", { server: "agent" }),
    content("Done."),
    finished,
  ];
  return [
    mapper.begin(),
    ...recorded.map((event, index) => mapper.map(event, index)).filter((event) => event !== null),
    mapper.end({ status: "complete" }),
  ];
}

let window: Window;
beforeEach(() => {
  window = new Window();
  vi.stubGlobal("window", window);
  vi.stubGlobal("document", window.document);
  vi.stubGlobal("navigator", window.navigator);
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await window.happyDOM.close();
});

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

/** Renders a component that only uses the hook; resolves with what it last returned. */
async function render<Result>(useHook: () => Result): Promise<{
  latest(): Result;
  act(work: () => Promise<void> | void): Promise<void>;
  rerender(): Promise<void>;
  unmount(): Promise<void>;
}> {
  const { act, createElement } = await import("react");
  const { createRoot } = await import("react-dom/client");
  let latest: Result;
  const Probe = (): null => {
    latest = useHook();
    return null;
  };
  const root = createRoot(window.document.createElement("div") as never);
  const rerender = (): Promise<void> => act(async () => root.render(createElement(Probe)));
  await rerender();
  return {
    latest: () => latest,
    act: (work) => act(async () => work()),
    rerender,
    unmount: () => act(async () => root.unmount()),
  };
}

test("the guide's own hook, as it stands there, ends in the right state", async () => {
  const guide = await import("../../fixtures/frontend-guide/use-tool-call-stream.ts");
  const hook = await render(() => guide.useToolCallStream());
  for (const event of events()) await hook.act(() => hook.latest().processChunk(event));
  const calls = [...hook.latest().toolCalls.values()] as unknown as Record<string, unknown>[];
  expect(calls.map((it) => [it["call_id"], it["content"], it["is_complete"]])).toEqual([
    ["d1", "The notes say hello.", true],
    ["d2", "A line.", true],
    ["i1", "found", true],
  ]);
  // What it knows of the whole result is the same.
  expect(calls[0]!["tool_response"]).toBe("The notes say hello.");
});

test("ours: the same calls, their types updated too", async () => {
  const { useToolCallStream } = await import("../../../src/client/react.ts");
  const hook = await render(() => useToolCallStream());
  for (const event of events()) await hook.act(() => hook.latest().processChunk(event));
  const { state, toolCalls, status } = hook.latest();
  expect(status).toBe("idle");
  expect(state.message).toBe("I ask.\n\nDone.");
  expect([...toolCalls.values()].map((it) => [it.call_id, it.event_type, it.content])).toEqual([
    ["d1", "delegation_result", "The notes say hello."],
    ["d2", "delegation_result", "A line."],
    ["i1", "result", "found"],
  ]);
  await hook.act(() => hook.latest().reset());
  expect(hook.latest().state.toolCalls).toEqual([]);
});

test("it reads an address over connections that break, and stops with its component", async () => {
  const { useToolCallStream } = await import("../../../src/client/react.ts");
  const all = events();
  let connection = 0;
  const serve: typeof fetch = async (_input, init) => {
    const after = Number(new Headers(init?.headers).get("last-event-id") ?? 0);
    connection += 1;
    const some = all.slice(after, after + 6);
    const text = some.map(
      (event, index) => `id: ${after + index + 1}\ndata: ${JSON.stringify(event)}\n\n`,
    );
    return new Response(text.join(""), { headers: { "content-type": "text/event-stream" } });
  };
  const hook = await render(() => useToolCallStream("/stream", { fetch: serve }));
  for (let round = 0; round < 200 && hook.latest().status !== "ended"; round++)
    await hook.act(() => settle());
  expect(hook.latest().status).toBe("ended");
  expect(connection).toBe(Math.ceil(all.length / 6));
  expect(hook.latest().state.message).toBe("I ask.\n\nDone.");
  await hook.unmount();

  let signal: AbortSignal | null | undefined;
  const hang: typeof fetch = (_input, init) => {
    signal = init?.signal;
    return new Promise(() => {});
  };
  const second = await render(() => useToolCallStream("/stream", { fetch: hang }));
  expect(second.latest().status).toBe("connecting");
  await second.unmount();
  expect(signal!.aborted).toBe(true);
});

test("an address that is refused is told as failed", async () => {
  const { useToolCallStream } = await import("../../../src/client/react.ts");
  const refuse: typeof fetch = async () =>
    Response.json({ error: { message: "No such run.", code: "not_found" } }, { status: 404 });
  const hook = await render(() => useToolCallStream("/stream", { fetch: refuse }));
  await hook.act(() => settle());
  expect(hook.latest().status).toBe("failed");
  expect(hook.latest().error).toMatchObject({ message: "No such run.", status: 404 });
});

test("without an address any more it is idle, and what was read stays", async () => {
  const { useToolCallStream } = await import("../../../src/client/react.ts");
  const [begun] = events();
  const stream = (): Response => {
    const text = `id: 1\ndata: ${JSON.stringify({ ...begun, message: "So far." })}\n\n`;
    const start = (controller: ReadableStreamDefaultController): void =>
      controller.enqueue(new TextEncoder().encode(text));
    return new Response(new ReadableStream({ start }), {
      headers: { "content-type": "text/event-stream" },
    });
  };
  const refusal = (): Response => Response.json({ error: {} }, { status: 404 });
  for (const [answer, reached] of [
    [stream, "streaming"],
    [refusal, "failed"],
  ] as const) {
    let url: string | null = "/stream";
    const hook = await render(() => useToolCallStream(url, { fetch: async () => answer() }));
    await hook.act(() => settle());
    const { status, state } = hook.latest();
    expect(status).toBe(reached);
    url = null;
    await hook.rerender();
    expect(hook.latest()).toMatchObject({ status: "idle", error: null, state });
    await hook.unmount();
  }
});
