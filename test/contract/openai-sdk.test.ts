/** The official client, as its users have it. */

import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  provider,
  usage,
  type World,
} from "./fake-services.ts";

const messages = [{ role: "user" as const, content: "Which files?" }];
const call = { id: "call_1", name: "list_files", arguments: '{"path":"."}' };
const bare = { id: "call_2", name: "list_files", arguments: "{}" };
const tools = [{ type: "function" as const, function: { name: "list_files" } }];
let world: World;

afterEach(() => world.app.close());

async function client(created: World): Promise<OpenAI> {
  world = created;
  const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "EMPTY", maxRetries: 0 });
}

test("the stream helper assembles two parallel calls", async () => {
  const openai = await client(createWorld());
  world.chat.script = [
    { type: "content", text: "Let me see." },
    ...callEvents(call),
    { type: "call-start", index: 1, id: bare.id, name: bare.name },
    { type: "call-end", index: 1, call: bare },
    finish("tool_calls", [call, bare]),
  ];
  const stream = openai.chat.completions.stream({ model: "default", messages, tools });
  const { choices } = await stream.finalChatCompletion();
  expect(choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: {
      content: "Let me see.",
      tool_calls: [
        { id: "call_1", function: { name: "list_files", arguments: '{"path":"."}' } },
        { id: "call_2", function: { name: "list_files", arguments: "{}" } },
      ],
    },
  });
});

test("internal mode is one answer with one usage", async () => {
  const list = fakeTool("list_files", { content: "a.txt", isError: false });
  const openai = await client(createWorld({ tools: provider(list) }));
  world.chat.script = [
    ...callEvents(call),
    { type: "hold", calls: [call], usage },
    { type: "content", text: "There is a.txt." },
    finish("stop"),
  ];
  const stream = openai.chat.completions.stream({
    model: "default",
    messages,
    stream_options: { include_usage: true },
  });
  const { choices, usage: total } = await stream.finalChatCompletion();
  expect(choices[0]).toMatchObject({
    finish_reason: "stop",
    message: { content: "There is a.txt." },
  });
  expect(choices[0]!.message.tool_calls ?? []).toEqual([]);
  expect(total).toMatchObject({ total_tokens: 32, prompt_tokens_details: { cached_tokens: 12 } });
});

test("errors arrive as the client's own, before and in a stream", async () => {
  const openai = await client(createWorld());
  world.chat.script = [{ fail: new FermataError("queue_full", "Too many requests wait.") }];
  await expect(
    openai.chat.completions.create({ model: "default", messages }),
  ).rejects.toMatchObject({
    status: 429,
    code: "queue_full",
    requestID: expect.stringMatching(/^req_/),
  });
  world.chat.script = [
    { type: "content", text: "a" },
    { fail: new FermataError("decode_failed", "Because.") },
  ];
  const stream = openai.chat.completions.stream({ model: "default", messages });
  await expect(stream.finalChatCompletion()).rejects.toMatchObject({ code: "decode_failed" });
});

test("models", async () => {
  const openai = await client(createWorld());
  const { data } = await openai.models.list();
  expect(data.map(({ id }) => id)).toEqual(["tiny"]);
  expect((await openai.models.retrieve("tiny")).id).toBe("tiny");
});
