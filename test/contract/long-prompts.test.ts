/** A prompt that is too long for the context: the error says what takes the room, and what to do. */

import { expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import type { Tool } from "../../src/tools/types.ts";
import { engineWorld } from "./engine-world.ts";
import { createWorld, fakeTool, post, provider } from "./fake-services.ts";

const tooLong = new FermataError(
  "context_length_exceeded",
  "This model's maximum context length is 1000 tokens, answer included; the prompt has 9923.",
  { param: "prompt", size: { promptTokens: 9923, contextSize: 1000 } },
);
const onServer = (server: string, name: string): Tool =>
  fakeTool(name, { content: "", isError: false }, server);
const served = [onServer("files", "read"), onServer("files", "write"), onServer("web", "fetch")];
const messages = [{ role: "user", content: "Hi" }];
const tool = { type: "function", function: { name: "mine", parameters: { type: "object" } } };

test.each([
  [
    "/v1/chat/completions",
    { messages },
    'The tools take 3000 of them (files 2000, web 1000). Choose fewer with "tools": {"allow": […]} in the MCP configuration, or start the server with a larger --ctx-size.',
  ],
  [
    "/v1/messages",
    { messages, max_tokens: 9 },
    "The tools take 3000 of them (files 2000, web 1000).",
  ],
  ["/v1/responses", { input: "Hi" }, "The tools take 3000 of them (files 2000, web 1000)."],
  [
    "/v1/chat/completions",
    { messages, tools: [tool] },
    "The tools of the request take 1000 of them. Send fewer tools or messages, or start the server with a larger --ctx-size.",
  ],
  [
    "/v1/chat/completions",
    { messages, tool_choice: "none" },
    "the prompt has 9923. Send less, or start the server with a larger --ctx-size.",
  ],
])("%s %j", async (url, payload, expected) => {
  const world = createWorld({ tools: provider(...served) });
  world.chat.script = [{ fail: tooLong }];
  world.chat.countPromptTokens = async (request) => 20 + 1000 * request.tools.length;
  const reply = await world.app.inject({ method: "POST", url, payload });
  expect(reply.statusCode).toBe(400);
  expect(reply.json().error.message).toContain(tooLong.message);
  expect(reply.json().error.message).toContain(expected);
});

test("Anthropic's wire says it in the words that its clients look for", async () => {
  const world = createWorld();
  world.chat.script = [{ fail: tooLong }];
  const payload = { messages, max_tokens: 9 };
  const reply = await world.app.inject({ method: "POST", url: "/v1/messages", payload });
  expect(reply.json().error.message).toMatch(
    /^prompt is too long: 9923 tokens > 1000 maximum\. This model's maximum context length is 1000/,
  );
});

const counts = { n_prompt_tokens: 9923, n_ctx: 1000 };

test.each([
  ["/v1/chat/completions", { messages }],
  ["/v1/chat/completions", { messages, stream: true }],
  ["/v1/responses", { input: "Hi" }],
])("%s %j: the error counts, as llama-server's does", async (url, payload) => {
  const world = createWorld();
  world.chat.script = [{ fail: tooLong }];
  const reply = await world.app.inject({ method: "POST", url, payload });
  expect(reply.json().error).toMatchObject({ code: "context_length_exceeded", ...counts });
});

test("what the template makes of the messages is counted", async () => {
  const { app, engine } = engineWorld();
  const n_ctx = engine.cache.cellsPerSequence;
  const content = "word ".repeat(n_ctx);
  const reply = await post(app, { messages: [{ role: "user", content }] });
  const { error } = reply.json();
  expect(error).toMatchObject({ code: "context_length_exceeded", n_ctx });
  expect(error.message).toContain(`take ${error.n_prompt_tokens},`);
  // What LiteLLM looks for, and LangChain.
  expect(error.message).toMatch(
    /^This model's maximum context length is \d+ tokens; the prompt is too long: /,
  );
});
