/** A run's stream over real sockets: cut anywhere, read by several, and by the frontend guide's own code. */

import { readFileSync } from "node:fs";
import { EventSource } from "eventsource";
import { afterEach, describe, expect, test, vi } from "vitest";
import { applyEvent, emptyState } from "../../src/client/conversation-state.ts";
import { readConversation, type StreamError } from "../../src/client/read-conversation.ts";
import { SseParser } from "../../src/client/sse-parser.ts";
import type { ConversationEvent } from "../../src/client/types.ts";
import type { ToolCall } from "../../src/chat/types.ts";
import * as guide from "../fixtures/frontend-guide/accumulation.ts";
import { call, ended, started, written } from "../support/run-recording.ts";
import { checkStream } from "../support/stream-check.ts";
import {
  type ConversationsWorld,
  createConversationsWorld,
  gate,
  type ReadEvent,
  scriptedTool,
} from "./conversations-world.ts";
import { callEvents, finish, provider, type ScriptStep } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import { eventually } from "../support/eventually.ts";
import { storeOfTests } from "../support/store-worlds.ts";

let world: ConversationsWorld;
afterEach(() => world.close());

const research: ToolCall = call("d1", "research", { agent: "researcher", task: "Read the notes." });
const writing: ToolCall = call("d2", "writing", { agent: "writer", task: "Write a line." });
const read: ToolCall = call("c1", "read_file", { path: "a" });

/** Two sub-agents at once, the one with a call of its own, and a plain call after them. */
const script: ScriptStep[] = [
  { type: "reasoning", text: "Two things." },
  { type: "content", text: "I ask them." },
  ...callEvents(research, 0),
  ...callEvents(writing, 1),
  { type: "hold", calls: [research, writing], usage },
  ...callEvents(read),
  { type: "hold", calls: [read], usage },
  { type: "content", text: "Both " },
  { type: "content", text: "are done." },
  finish("stop"),
];

function tools() {
  const agent = { server: "agent" };
  const inner = call("i1", "search", { q: "notes" });
  const turns = [gate(), gate(), gate()] as const;
  return provider(
    scriptedTool(
      "research",
      async (_args, { report }) => {
        for (const event of [...written(inner), started(inner), ended(inner, "found")])
          report({ type: "agent", agent: "researcher", event });
        report({ type: "output", text: "The notes " });
        turns[0].open();
        await turns[1].opened;
        report({ type: "output", text: "say " });
        turns[2].open();
        return { content: "The notes say hello.", isError: false, citations: ["notes.txt"] };
      },
      agent,
    ),
    scriptedTool(
      "writing",
      async (_args, { report }) => {
        await turns[0].opened;
        report({ type: "output", text: "A " });
        turns[1].open();
        await turns[2].opened;
        return "A line.";
      },
      agent,
    ),
    scriptedTool("read_file", async () => "content of a"),
  );
}

const results = {
  d1: "The notes say hello.",
  d2: "A line.",
  i1: "found",
  c1: "content of a",
};

describe("every place where a connection may be cut", () => {
  test.each(["memory", storeOfTests] as const)(
    "kept in %s: nothing is lost or doubled",
    async (kept) => {
      world = await createConversationsWorld({ tools: tools(), kept });
      const run = await world.begin("Go.", script);
      for (const path of [run.stream_url, `${run.stream_url}&details=1`]) {
        const whole = (await world.read(path)).events;
        checkStream(whole.map(({ event }) => event)).close();
        expect(whole.length).toBeGreaterThan(12);
        for (let cut = 1; cut <= whole.length; cut++) {
          const first = (await world.read(path, { most: cut })).events;
          const second = await world.read(path, { lastEventId: first.at(-1)!.id });
          expect([...first, ...second.events]).toEqual(whole);
          expect(second.status).toBe(cut === whole.length ? 204 : 200);
        }
      }
    },
  );

  test("while the run goes on, and with a connection for each event", async () => {
    const steps = Array.from({ length: 8 }, gate);
    const slow = scriptedTool(
      "research",
      async (_args, { report }) => {
        for (const [index, { opened }] of steps.entries()) {
          await opened;
          report({ type: "output", text: `part ${index} ` });
        }
        return steps.map((_, index) => `part ${index} `).join("");
      },
      { server: "agent" },
    );
    world = await createConversationsWorld({ tools: provider(slow) });
    const run = await world.begin("Go.", [
      ...callEvents(research),
      { type: "hold", calls: [research], usage },
      { type: "content", text: "Done." },
      finish("stop"),
    ]);
    const path = `${run.stream_url}&details=1`;
    const viewer = world.read(path);
    const events: ReadEvent[] = [];
    for (let connection = 0; ; connection++) {
      steps[connection - 6]?.open();
      const lastEventId = events.at(-1)?.id;
      const next = await world.read(path, { most: 1, ...(lastEventId && { lastEventId }) });
      if (next.status === 204) break;
      events.push(...next.events);
    }
    expect((await viewer).events).toEqual(events);
    checkStream(events.map(({ event }) => event)).close();
    const state = events.map(({ event }) => event).reduce(applyEvent, emptyState);
    expect(state.toolCalls[0]).toMatchObject({ event_type: "delegation_result", progress: "done" });
    expect(state.toolCalls[0]!.content).toBe(state.toolCalls[0]!.tool_response);
  });

  test("the client package reads on by itself", async () => {
    world = await createConversationsWorld({ tools: tools() });
    const run = await world.begin("Go.", script);
    const whole = (await world.read(`${run.stream_url}&details=1`)).events;
    let connections = 0;
    /** Ends after some bytes, wherever that is: clean or broken. */
    const cutting: typeof fetch = async (input, init) => {
      const reply = await fetch(input, init);
      if (reply.body === null) return reply;
      let left = 37 + 211 * connections++;
      const cut = new TransformStream<Uint8Array, Uint8Array>({
        // No time is lost between connections.
        start: (controller) => controller.enqueue(new TextEncoder().encode("retry: 1\n\n")),
        transform(chunk, controller) {
          controller.enqueue(chunk.subarray(0, left));
          left -= chunk.length;
          if (left > 0) return;
          if (connections % 2 === 0) controller.error(new TypeError("cut"));
          else controller.terminate();
        },
      });
      return new Response(reply.body.pipeThrough(cut), { headers: reply.headers });
    };
    const events: ReadEvent[] = [];
    const states: string[] = [];
    for await (const event of readConversation(`${world.url}${run.stream_url}&details=1`, {
      fetch: cutting,
      onConnection: ({ type }) => states.push(type),
    }))
      events.push(event);
    expect(events).toEqual(whole);
    expect(connections).toBeGreaterThan(5);
    expect(states.filter((state) => state === "open")).toHaveLength(connections);
  });

  test("without details the client ends by 204; what it may not see it is told", async () => {
    world = await createConversationsWorld();
    const run = await world.begin("Hi", [{ type: "content", text: "Hello." }, finish("stop")]);
    const events: ConversationEvent[] = [];
    for await (const { event } of readConversation(world.url + run.stream_url)) events.push(event);
    expect(events).toEqual([{ message: "Hello.", citations: [], tool_calls: [] }]);
    const stray = readConversation(`${world.url}/api/conversations/${run.id}/stream?run_id=no`);
    await expect(stray.next()).rejects.toMatchObject({
      name: "StreamError",
      status: 404,
      code: "not_found",
    } satisfies Partial<StreamError>);
  });
});

describe("viewers", () => {
  test("several see the same, one that leaves takes nothing with it", async () => {
    const step = gate();
    const slow = scriptedTool("read_file", async () => {
      await step.opened;
      return "x";
    });
    world = await createConversationsWorld({ tools: provider(slow) });
    const run = await world.begin("Go.", [
      { type: "content", text: "Reading." },
      ...callEvents(read),
      { type: "hold", calls: [read], usage },
      { type: "content", text: "Done." },
      finish("stop"),
    ]);
    const [one, two] = [world.read(run.stream_url), world.read(run.stream_url)];
    await world.read(run.stream_url, { most: 1 });
    step.open();
    const { events } = await one;
    expect(await two).toEqual({ status: 200, events });
    expect(events.map(({ event }) => event.message).join("")).toBe("Reading.\n\nDone.");
    // Without run_id it is the conversation's last run.
    expect((await world.read(`/api/conversations/${run.id}/stream`)).events).toEqual(events);
  });

  test("a run nobody looks at goes on to its end", async () => {
    world = await createConversationsWorld();
    const run = await world.begin("Hi", [{ type: "content", text: "Hello." }, finish("stop")]);
    await eventually(async () => {
      const { body } = await world.call("GET", `/api/conversations/${run.id}`);
      expect(body.messages[1]).toMatchObject({ message: "Hello.", status: "complete" });
    });
  });

  test("events have ids and no names, and no mark ends them", async () => {
    world = await createConversationsWorld();
    const run = await world.begin("Hi", [{ type: "content", text: "Hello." }, finish("stop")]);
    const reply = await fetch(world.url + run.stream_url);
    expect(reply.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(await reply.text()).toMatch(
      /^id: \d+\ndata: \{"message":"Hello\.","citations":\[\],"tool_calls":\[\]\}\n\n$/,
    );
  });

  test("when the server closes, a run ends as failed and its viewers' streams end", async () => {
    world = await createConversationsWorld();
    const run = await world.begin("Hi", [{ type: "content", text: "He" }, { hang: true }]);
    const reply = await fetch(`${world.url}${run.stream_url}&details=1`);
    await world.app.close();
    const events = new SseParser().push(await reply.text());
    const last = JSON.parse(events.at(-1)!.data) as ConversationEvent;
    expect(last.details!.at(-1)).toMatchObject({
      type: "end",
      status: "failed",
      error: { code: "engine_closed" },
    });
  });
});

describe("the frontend guide's code, as it stands there", () => {
  test("is what guide.md says", () => {
    const read = (name: string): string =>
      readFileSync(new URL(`../fixtures/frontend-guide/${name}`, import.meta.url), "utf8");
    const blocks = [...read("guide.md").matchAll(/```typescript\n(.*?)```/gs)].map(([, it]) => it!);
    expect(blocks).toHaveLength(7);
    for (const index of [2, 3, 6]) expect(read("accumulation.ts")).toContain(blocks[index]!);
    expect(read("use-tool-call-stream.ts")).toContain(blocks[5]!);
  });

  test("its EventSource and its accumulation end in the right state", async () => {
    world = await createConversationsWorld({ tools: tools() });
    const run = await world.begin("Go.", script);
    guide.reset();
    const ended = gate();
    vi.spyOn(console, "error").mockImplementation(() => ended.open());
    const { url } = world;
    vi.stubGlobal(
      "EventSource",
      class extends EventSource {
        constructor(path: string) {
          super(url + path);
        }
      },
    );
    try {
      await guide.consumeStream(run.id, run.run_id);
      await ended.opened;
    } finally {
      vi.unstubAllGlobals();
      vi.restoreAllMocks();
    }
    expect(guide.said()).toEqual({
      message: "I ask them.\n\nBoth are done.",
      citations: ["notes.txt"],
    });
    const calls = [...guide.toolCallsMap.values()];
    expect(Object.fromEntries(calls.map((it) => [it.call_id, it.tool_response]))).toEqual(results);
    for (const it of calls) {
      expect(it).toMatchObject({ is_complete: true, is_streaming: false });
      expect(it.accumulated_response).toBe(it.tool_response);
    }
  });

  test("an interruption leaves it with what came, complete", async () => {
    const step = gate();
    const slow = scriptedTool(
      "research",
      async (_args, { report, signal }) => {
        report({ type: "output", text: "Half of it" });
        step.open();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return { content: "Error: cancelled.", isError: true };
      },
      { server: "agent" },
    );
    world = await createConversationsWorld({ tools: provider(slow) });
    const run = await world.begin("Go.", [
      ...callEvents(research),
      { type: "hold", calls: [research], usage },
      { hang: true },
    ]);
    await step.opened;
    await world.call("POST", `/api/conversations/${run.id}/runs/${run.run_id}/cancel`);
    const { events } = await world.read(run.stream_url);
    guide.reset();
    for (const { event } of events) guide.processStreamChunk(event);
    expect([...guide.toolCallsMap.values()]).toMatchObject([
      {
        call_id: "d1",
        accumulated_response: "Half of it",
        tool_response: "Half of it",
        is_complete: true,
        is_streaming: false,
      },
    ]);
    expect(events.at(-1)!.event.tool_calls).toMatchObject([
      {
        event_type: "delegation_result",
        is_complete: true,
        tool_call_details: { error: expect.stringContaining("cancelled") },
      },
    ]);
  });

  test("without an end of its own, an EventSource that reconnects gets 204 and stops", async () => {
    world = await createConversationsWorld();
    const run = await world.begin("Hi", [{ type: "content", text: "Hello." }, finish("stop")]);
    const seen: number[] = [];
    const source = new EventSource(world.url + run.stream_url, {
      fetch: async (input, init) => {
        const reply = await fetch(input, init);
        seen.push(reply.status);
        return reply;
      },
    });
    const texts: string[] = [];
    source.onmessage = ({ data }) => texts.push(JSON.parse(data).message);
    await eventually(() => expect(source.readyState).toBe(EventSource.CLOSED));
    expect(seen).toEqual([200, 204]);
    expect(texts).toEqual(["Hello."]);
  });
});
