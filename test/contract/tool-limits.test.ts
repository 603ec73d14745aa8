/** At a limit of the tool loop the model answers without tools, and the limit is told beside its answer. */

import { expect, test } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import {
  type ScriptStep,
  callEvents,
  createWorld,
  fakeTool,
  finish,
  provider,
  usage,
} from "./fake-services.ts";

const notice = "No more tools were called: the limit of 1 rounds of tool calls is reached.";
const messages = [{ role: "user", content: "Count." }];

function round(id: string): ScriptStep[] {
  const call: ToolCall = { id, name: "read", arguments: "{}" };
  return [...callEvents(call), { type: "hold", calls: [call], usage }];
}

function limitedWorld() {
  const tool = fakeTool("read", { content: "one", isError: false });
  const world = createWorld({ tools: provider(tool), config: { maxToolRounds: 1 } });
  world.chat.script = [
    ...round("call_1"),
    ...round("call_2"),
    { type: "content", text: "One." },
    finish("stop"),
  ];
  return world;
}

const wires = [
  ["/v1/chat/completions", { messages }],
  ["/v1/messages", { messages, max_tokens: 99 }],
  ["/v1/responses", { input: "Count." }],
] as const;

test.each(wires)("%s", async (url, payload) => {
  const world = limitedWorld();
  const body = (await world.app.inject({ method: "POST", url, payload })).json();
  const told = body.choices?.[0].message ?? body;
  expect(told.warnings).toEqual([notice]);
  expect(JSON.stringify(body)).toContain(`One.\\n\\n[${notice}]`);
  // The second round's call is not run.
  const [first, second] = world.chat.outputs;
  expect(first?.[0]?.content).toBe("one");
  const say =
    "No more tools can be called. Answer my question now, in words, with what the results above say.\n\nMy question was: Count.";
  expect(world.chat.said).toEqual([say, say]);
  expect(second?.[0]?.content).toContain("Error: not run: the limit of 1 rounds");
});

test.each(wires)("%s, streamed", async (url, payload) => {
  const { app } = limitedWorld();
  const reply = await app.inject({ method: "POST", url, payload: { ...payload, stream: true } });
  expect(reply.body).toContain(`"warnings":["${notice}"]`);
  expect(reply.body).toContain("One.");
});

test("an answer that keeps the limits has no warnings", async () => {
  const { app } = createWorld();
  for (const [url, payload] of wires)
    expect((await app.inject({ method: "POST", url, payload })).body).not.toContain("warnings");
});
