// /api/conversations with the shipped model, a real MCP server and real sockets; only the choice of tokens is
// scripted. Read by the frontend guide's own code, over an EventSource.
import { once } from "node:events";
import { EventSource } from "eventsource";
import { afterEach, expect, test, vi } from "vitest";
import { applyEvent, emptyState } from "../../src/client/conversation-state.ts";
import { readConversation } from "../../src/client/read-conversation.ts";
import type { Conversation, ConversationEvent, RunStarted } from "../../src/client/types.ts";
import { mcpServerFromCommand } from "../../src/mcp/config.ts";
import { defineTool } from "../../src/tools/tool-builder.ts";
import { gate } from "../contract/conversations-world.ts";
import * as guide from "../fixtures/frontend-guide/accumulation.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { checkStream } from "../support/stream-check.ts";

let server: ScriptedServer | undefined;
afterEach(async () => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  await server?.close();
  server = undefined;
});

async function post<Body>(path: string, body: object): Promise<Body> {
  const reply = await fetch(server!.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(reply.ok, await reply.clone().text()).toBe(true);
  return (await reply.json()) as Body;
}

async function ask(
  id: string,
  message: string,
  onEvent: (event: ConversationEvent) => void = () => {},
): Promise<RunStarted & { events: ConversationEvent[] }> {
  const path = `/api/conversations/${id}/runs`;
  const run = await post<RunStarted>(path, { message, temperature: 0 });
  const events: ConversationEvent[] = [];
  const url = `${server!.url}${run.stream_url}&details=1`;
  for await (const { event } of readConversation(url)) {
    events.push(event);
    onEvent(event);
  }
  checkStream(events).close();
  return { ...run, events };
}

test("a tool call on the wire, and a second message that computes only what is new", async () => {
  server = await startScriptedServer({ files: { "notes.txt": "Remember the milk." }, store: true });
  const question = "What do my notes say?";
  await server.script(question, [
    callText("read_text_file", { path: `${server.folder}/notes.txt` }),
    "They say: remember the milk.",
    "Yes.",
  ]);
  const tools = ["read_text_file"];
  const { id } = await post<Conversation>("/api/conversations", { tools });
  const first = await ask(id, question);

  await readAsTheGuideDoes(id, first.run_id);
  expect(guide.said().message).toBe("They say: remember the milk.");
  expect([...guide.toolCallsMap.values()]).toMatchObject([
    {
      event_type: "result",
      tool_name: "read_text_file",
      tool_response: "Remember the milk.",
      is_complete: true,
    },
  ]);

  const state = first.events.reduce(applyEvent, emptyState);
  expect(state.toolCalls[0]!.arguments).toContain("notes.txt");
  expect(state.end).toMatchObject({ status: "complete" });
  expect(state.timeline.map(({ phase }) => phase)).toEqual(
    expect.arrayContaining(["queued", "prefill", "decode", "hold", "tool", "resume"]),
  );

  const second = await ask(id, "Really?");
  const usage = second.events.reduce(applyEvent, emptyState).end!.usage!;
  const before = state.end!.usage!;
  // All that the first answer read and said is in the cache, but for what the template writes between turns.
  const known = before.prompt_tokens + before.completion_tokens;
  expect(usage.cached_tokens).toBeGreaterThan(known - 40);
  expect(usage.prefilled_tokens).toBe(usage.prompt_tokens - usage.cached_tokens);
});

/** Reads a run as the guide does it: with its EventSource loop, until that ends. */
async function readAsTheGuideDoes(id: string, runId: string): Promise<void> {
  guide.reset();
  let finished = (): void => {};
  const ended = new Promise<void>((resolve) => (finished = resolve));
  vi.spyOn(console, "error").mockImplementation(() => finished());
  const { url } = server!;
  vi.stubGlobal(
    "EventSource",
    class extends EventSource {
      constructor(path: string) {
        super(url + path);
      }
    },
  );
  await guide.consumeStream(id, runId);
  await ended;
}

test("two sub-agents at once, the one with a tool of its own", async () => {
  const question = "Ask both about the notes.";
  const tasks = ["Read the notes.", "Write a line."] as const;
  // Neither ends before the test lets it.
  let step = gate();
  const wait = defineTool("wait", "Waits").run(async (_args, { signal }) => {
    await Promise.race([step.opened, once(signal, "abort")]);
    return "waited";
  }, "gate");
  server = await startScriptedServer({
    files: { "notes.txt": "Remember the milk." },
    tools: [wait],
    agents: {
      supervisor: "boss",
      agents: {
        boss: { description: "Asks others", instructions: "You ask others." },
        reader: {
          description: "Reads",
          instructions: "You read.",
          tools: { [mcpServerFromCommand("", []).id]: ["read_text_file"], gate: "*" },
        },
        writer: { description: "Writes", instructions: "You write.", tools: { gate: "*" } },
      },
    },
  });
  const delegations = ["reader", "writer"].map((agent, index) =>
    callText("delegate", { agent, task: tasks[index] }),
  );
  const sayings = ["They say: remember the milk.", "A line: milk and honey."] as const;
  const readings = sayings.map((saying) => `${saying}\n\nThat is all.`);
  await server.script(question, [delegations.join("\n"), "Both are done."]);
  await server.script(tasks[0], [
    callText("read_text_file", { path: `${server.folder}/notes.txt` }),
    `${sayings[0]}${callText("wait", {})}`,
    "That is all.",
  ]);
  await server.script(tasks[1], [`${sayings[1]}${callText("wait", {})}`, "That is all."]);
  const { id } = await post<Conversation>("/api/conversations", { model: "boss" });
  // They go on when both were heard: were one's parts kept until it ends, or until the other does, this
  // would never be.
  const heard = new Set<string>();
  const run = await ask(id, question, ({ tool_calls: calls }) => {
    for (const { call_id: callId, stream_part: part } of calls) if (part) heard.add(callId);
    if (heard.size === 2) step.open();
  });
  const state = run.events.reduce(applyEvent, emptyState);
  expect(state.message).toBe("Both are done.");
  const [reader, writer, ...inner] = state.toolCalls;
  expect([reader, writer].map((call) => call!.event_type)).toEqual([
    "delegation_result",
    "delegation_result",
  ]);
  expect([reader!.content, writer!.content]).toEqual(readings);
  expect(reader!.tool_call_details).toMatchObject({ summary: tasks[0], delegate: "reader" });
  expect(inner.map((it) => it.tool_name).toSorted()).toEqual(["read_text_file", "wait", "wait"]);
  expect(inner.find((it) => it.tool_name === "read_text_file")).toMatchObject({
    content: "Remember the milk.",
    tool_call_details: { agent: "reader", parent_call_id: reader!.call_id },
  });
  // Their parts interleave: both stream before the first of them ends.
  const told = run.events.flatMap((event) => event.tool_calls);
  const firstEnd = told.findIndex((it) => it.event_type === "delegation_result" && it.is_complete);
  const streamed = told.slice(0, firstEnd).filter((it) => it.event_type === "delegation_result");
  expect(new Set(streamed.map((it) => it.call_id)).size).toBe(2);

  await readAsTheGuideDoes(id, run.run_id);
  expect(guide.said().message).toBe("Both are done.");
  const calls = [...guide.toolCallsMap.values()];
  expect(calls.map((it) => it.tool_response).toSorted()).toEqual(
    [...readings, "Remember the milk.", "waited", "waited"].toSorted(),
  );
  for (const it of calls) {
    expect(it).toMatchObject({ is_complete: true, is_streaming: false });
    expect(it.accumulated_response).toBe(it.tool_response);
  }

  // The same question again, and interrupted while the sub-agents speak.
  step = gate();
  const path = `/api/conversations/${id}/runs`;
  const again = await post<RunStarted>(path, { message: question, parent_id: null });
  let cut = emptyState;
  let cancelled = false;
  const events: ConversationEvent[] = [];
  for await (const { event } of readConversation(`${server.url}${again.stream_url}&details=1`)) {
    events.push(event);
    cut = applyEvent(cut, event);
    if (cancelled || !cut.toolCalls.some(({ is_streaming: streams }) => streams)) continue;
    cancelled = true;
    await post(`${path}/${again.run_id}/cancel`, {});
  }
  checkStream(events).close();
  expect(cut.end).toEqual({ type: "end", status: "cancelled" });
  const interrupted = cut.toolCalls.filter(({ event_type: type }) => type === "delegation_result");
  expect(interrupted).toHaveLength(2);
  expect(interrupted.some((call) => call.tool_call_details.error !== undefined)).toBe(true);
  expect(interrupted.every((call) => call.is_complete)).toBe(true);
  const stats = await server.settledStats();
  expect([stats.running, stats.waiting, stats.held]).toEqual([0, 0, 0]);
});

test("cancelled while the model speaks: nothing stays held, and a new answer begins", async () => {
  server = await startScriptedServer({ store: true });
  const question = "Tell me a long story.";
  // Longer than it takes to cancel it.
  const whole = "word ".repeat(5000);
  await server.script(question, [whole]);
  const { id } = await post<Conversation>("/api/conversations", {});
  const run = await post<RunStarted>(`/api/conversations/${id}/runs`, { message: question });
  const url = `${server.url}${run.stream_url}&details=1`;
  let state = emptyState;
  let cancelled = false;
  for await (const { event } of readConversation(url)) {
    state = applyEvent(state, event);
    if (cancelled || state.message.length < 20) continue;
    cancelled = true;
    await post(`/api/conversations/${id}/runs/${run.run_id}/cancel`, {});
  }
  expect(state.end).toEqual({ type: "end", status: "cancelled" });
  expect(state.message.length).toBeLessThan(whole.length - 5);
  const stats = await server.settledStats();
  expect([stats.running, stats.waiting, stats.held]).toEqual([0, 0, 0]);
  const reply = await fetch(`${server.url}/api/conversations/${id}`);
  const { messages } = (await reply.json()) as Conversation;
  expect(messages[1]).toMatchObject({ status: "cancelled", message: state.message });
});
