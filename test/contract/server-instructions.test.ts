/** What MCP servers say about their tools: on every wire the model reads it, and counts have it. */

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/tool-builder.ts";
import { createWorld } from "./fake-services.ts";

const tool = {
  ...defineTool("az_list", "Lists.").run(() => "none"),
  server: "az",
  serverInstructions: "Ask for the region first.",
};
const said = {
  role: "system",
  content: "# About the tools of az\n\nAsk for the region first.",
};
const hello = { role: "user", content: "Hi" };
const chat = { messages: [hello] };
const anthropic = { model: "m", max_tokens: 9, messages: [hello] };

function setUp() {
  return createWorld({ tools: { tools: () => [tool], close: async () => {} } });
}

test.each<[string, object]>([
  ["/v1/chat/completions", chat],
  ["/v1/messages", anthropic],
  ["/v1/responses", { input: "Hi" }],
  ["/api/chat", { ...chat, stream: false }],
])("%s: the model reads it", async (url, payload) => {
  const world = setUp();
  const reply = await world.app.inject({ method: "POST", url, payload });
  expect(reply.statusCode).toBe(200);
  expect(world.chat.requests.map(({ messages }) => messages)).toEqual([[said, hello]]);
});

test.each<[string, object]>([
  ["/v1/chat/completions/input_tokens", chat],
  ["/v1/messages", { ...anthropic, stream: true }],
  ["/v1/messages/count_tokens", anthropic],
  ["/v1/responses/input_tokens", { input: "Hi" }],
])("%s: it counts", async (url, payload) => {
  const world = setUp();
  const reply = await world.app.inject({ method: "POST", url, payload });
  expect(reply.statusCode).toBe(200);
  expect(world.chat.counted.map(({ messages }) => messages)).toEqual([[said, hello]]);
});

test("/api/tools: its tokens are its server's", async () => {
  const world = setUp();
  await world.app.inject({ url: "/api/tools" });
  const [without, all, own] = world.chat.counted.map(({ messages }) => messages);
  const question = { role: "user", content: "Hello" };
  expect([without, all, own]).toEqual([[question], [said, question], [said, question]]);
});

test.each([
  { tools: [] },
  { tool_choice: "none" },
  { tools: [{ type: "function", function: { name: "own", parameters: { type: "object" } } }] },
])("%j: without its tools there is nothing of it", async (more) => {
  const world = setUp();
  const payload = { ...chat, ...more };
  await world.app.inject({ method: "POST", url: "/v1/chat/completions", payload });
  expect(world.chat.requests[0]!.messages).toEqual([hello]);
});
