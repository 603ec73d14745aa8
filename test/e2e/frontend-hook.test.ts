// The frontend guide's own code on a page, while a run goes on: its React hook in a real React (the document
// is a simulated one, happy-dom) and its accumulation, each with an EventSource on a real socket. The engine
// and the model are real, what the model says is scripted. The tool waits until the page shows what came
// before it, so that the page is known to have been there.
import { EventSource } from "eventsource";
import { Window } from "happy-dom";
import { createElement, useEffect, useState } from "react";
import type { Root } from "react-dom/client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Conversation, RunStarted } from "../../src/client/types.ts";
import { defineTool } from "../../src/tools/tool-builder.ts";
import * as accumulation from "../fixtures/frontend-guide/accumulation.ts";
import { useToolCallStream } from "../fixtures/frontend-guide/use-tool-call-stream.ts";
import { eventually } from "../support/eventually.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

interface ShownCall {
  call_id: string;
  event_type: string;
  tool_name: string;
  content: string;
  tool_response?: string;
  tool_call_details: Record<string, unknown>;
  is_complete: boolean;
}

const agents = {
  supervisor: "boss",
  agents: {
    boss: { description: "Asks others", instructions: "You ask others." },
    left: { description: "Looks left", instructions: "You look left.", tools: { sea: "*" } },
    right: { description: "Looks right", instructions: "You look right.", tools: { sea: "*" } },
  },
};
const look = defineTool("look", "Looks at the sea").run(async (_args, { signal }) => {
  await Promise.race([
    mayLook,
    new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
  ]);
  return "A boat.";
}, "sea");

const window = new Window();
let server: ScriptedServer;
let mayLook: Promise<void>;
let letThemLook: () => void;
let root: Root | undefined;
let shown: ShownCall[];

beforeAll(async () => {
  server = await startScriptedServer({ agents, tools: [look], engine: { threads: 1 } });
  // To the end of this file's process: React comes back to its window after a page is gone.
  vi.stubGlobal("window", window);
  vi.stubGlobal("document", window.document);
  vi.stubGlobal("navigator", window.navigator);
  vi.stubGlobal("EventSource", ServersEventSource);
});
afterAll(() => server.close());

beforeEach(() => {
  mayLook = new Promise((resolve) => (letThemLook = resolve));
  shown = [];
  accumulation.reset();
});
afterEach(async () => {
  letThemLook();
  root?.unmount();
  root = undefined;
  vi.restoreAllMocks();
  const { running, waiting, held } = await server.settledStats();
  expect([running, waiting, held]).toEqual([0, 0, 0]);
});

/** As a page of the server's own origin has it. */
class ServersEventSource extends EventSource {
  constructor(path: string) {
    super(server.url + path);
  }
}

async function post<Body>(path: string, body: object): Promise<Body> {
  const reply = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(reply.ok, await reply.clone().text()).toBe(true);
  return (await reply.json()) as Body;
}

/** What a reader of the guide writes around the hook. */
function Page({ url }: { url: string }) {
  const { toolCalls, processChunk } = useToolCallStream();
  const [isOver, setIsOver] = useState(false);
  useEffect(() => {
    const source = new ServersEventSource(url);
    source.onmessage = ({ data }) => processChunk(JSON.parse(data));
    source.onerror = () => {
      source.close();
      setIsOver(true);
    };
    return () => source.close();
  }, [url, processChunk]);
  shown = [...toolCalls.values()];
  const items = shown.map(({ call_id: id, tool_name: name, content }) =>
    createElement("li", { key: id }, `${name}: ${content}`),
  );
  return createElement("ul", { className: isOver ? "over" : "running" }, items);
}

/** Asks, with the page and the guide's EventSource loop looking on. */
async function ask(question: string, conversation: object) {
  const { id } = await post<Conversation>("/api/conversations", conversation);
  const path = `/api/conversations/${id}/runs`;
  const run = await post<RunStarted>(path, { message: question, temperature: 0 });
  const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
  await accumulation.consumeStream(id, run.run_id);
  const { createRoot } = await import("react-dom/client");
  const element = window.document.createElement("div");
  root = createRoot(element as never);
  root.render(createElement(Page, { url: run.stream_url }));
  return {
    cancel: () => post(`${path}/${run.run_id}/cancel`, {}),
    /** Until the page shows this much. */
    shows: (calls: object[]) =>
      eventually(() => expect(shown).toEqual(calls.map((it) => expect.objectContaining(it)))),
    async end() {
      await eventually(() => expect(element.innerHTML).toContain('class="over"'));
      // The guide's loop says so when the stream ends; React has nothing to say.
      await eventually(() => expect(complaints).toHaveBeenCalled());
      expect(complaints.mock.calls.map(([what]) => what)).toEqual(["Stream error:"]);
      const items = [...element.querySelectorAll("li")].map((item) => item.textContent);
      expect(items).toEqual(shown.map((call) => `${call.tool_name}: ${call.content}`));
      // Both ways of the guide come to the same.
      const told = [...accumulation.toolCallsMap.values()];
      expect(told.map((it) => [it.call_id, it.accumulated_response, it.is_complete])).toEqual(
        shown.map((it) => [it.call_id, it.content, it.is_complete]),
      );
      for (const it of told)
        expect(it).toMatchObject({ is_streaming: false, tool_response: it.accumulated_response });
    },
  };
}

const delegate = (agent: string, task: string): string => callText("delegate", { agent, task });
const begun = "First I look.";
const said = { left: "On the left there is a boat.", right: "The boat is on the right." };

/** Each says something, looks, and says the rest. */
async function scriptSubAgents(): Promise<void> {
  for (const side of ["left", "right"] as const)
    await server.script(`Look ${side}.`, [`${begun}\n${callText("look", {})}`, said[side]]);
}

test("a plain tool call", async () => {
  const question = "What is there?";
  await server.script(question, [callText("look", {}), "There is a boat."]);
  const page = await ask(question, { tools: ["look"] });
  const call = { tool_name: "look", is_complete: true };
  await page.shows([{ ...call, event_type: "call", content: "" }]);
  letThemLook();
  await page.end();
  expect(shown).toEqual([
    expect.objectContaining({ ...call, event_type: "result", content: "A boat." }),
  ]);
  expect(accumulation.said().message).toBe("There is a boat.");
});

test("a streamed delegation with one call_id", async () => {
  const question = "What is on the left?";
  await scriptSubAgents();
  await server.script(question, [delegate("left", "Look left."), "A boat, I am told."]);
  const page = await ask(question, { model: "boss" });
  await page.shows([
    { tool_name: "delegate", content: begun, is_complete: false },
    { tool_name: "look", content: "" },
  ]);
  letThemLook();
  await page.end();
  const whole = `${begun}\n\n${said.left}`;
  expect(shown).toMatchObject([
    {
      tool_name: "delegate",
      content: whole,
      tool_response: whole,
      is_complete: true,
      tool_call_details: { summary: "Look left." },
    },
    { tool_name: "look", event_type: "result", content: "A boat.", is_complete: true },
  ]);
  expect(shown).toHaveLength(2);
  expect(shown[1]!.tool_call_details).toMatchObject({
    agent: "left",
    parent_call_id: shown[0]!.call_id,
  });
  expect(accumulation.said().message).toBe("A boat, I am told.");
});

/** Both are in the middle of their answers, and the page shows it. */
async function askBoth(question: string) {
  await scriptSubAgents();
  const both = [delegate("left", "Look left."), delegate("right", "Look right.")];
  await server.script(question, [both.join("\n"), "A boat on each side."]);
  const page = await ask(question, { model: "boss" });
  await eventually(() => {
    const half = shown.filter((call) => call.content === begun && !call.is_complete);
    expect(half.map(({ tool_call_details: { summary } }) => summary)).toEqual([
      "Look left.",
      "Look right.",
    ]);
    expect(shown.filter((call) => call.tool_name === "look")).toHaveLength(2);
  });
  return page;
}

test("two sub-agents at once", async () => {
  const page = await askBoth("What is on both sides?");
  letThemLook();
  await page.end();
  const delegations = shown.filter((call) => call.tool_name === "delegate");
  expect(delegations.map((call) => call.content)).toEqual(
    [said.left, said.right].map((text) => `${begun}\n\n${text}`),
  );
  const looks = shown.filter((call) => call.tool_name === "look");
  expect(looks.map((call) => call.content)).toEqual(["A boat.", "A boat."]);
  expect(new Set(looks.map((call) => call.tool_call_details["parent_call_id"]))).toEqual(
    new Set(delegations.map((call) => call.call_id)),
  );
  expect(shown.every((call) => call.is_complete)).toBe(true);
  expect(accumulation.said().message).toBe("A boat on each side.");
});

test("an interruption while both speak", async () => {
  const page = await askBoth("What is on both sides, if you can say?");
  await page.cancel();
  await page.end();
  const delegations = shown.filter((call) => call.tool_name === "delegate");
  expect(delegations).toHaveLength(2);
  for (const call of delegations)
    expect(call).toMatchObject({ content: begun, tool_response: begun, is_complete: true });
  const looks = shown.filter((call) => call.tool_name === "look");
  expect(looks).toHaveLength(2);
  for (const call of looks)
    expect(call).toMatchObject({
      is_complete: true,
      tool_call_details: { error: expect.stringMatching(/./) },
    });
  expect(accumulation.said().message).toBe("");
});
