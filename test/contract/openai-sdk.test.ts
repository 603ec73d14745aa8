/** The official client, as its users have it. */

import { Ajv2020 } from "ajv/dist/2020.js";
import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import type { Tool } from "../../src/tools/types.ts";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  provider,
  type World,
} from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

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

test("a stream of responses throws on what does not fit, as OpenAI's does", async () => {
  const openai = await client(createWorld());
  world.chat.script = [{ fail: new FermataError("context_length_exceeded", "Too long.") }];
  const stream = await openai.responses.create({ model: "default", input: "Hi", stream: true });
  const read = async (): Promise<void> => {
    for await (const _ of stream);
  };
  await expect(read()).rejects.toMatchObject({ code: "context_length_exceeded" });
});

test.each([true, false])("tool status asked for: %s; the helpers bear it", async (isAsked) => {
  const list: Tool = {
    ...fakeTool("list_files", { content: "a.txt", isError: false }),
    call: async (_args, { report }) => {
      report({ type: "progress", message: "reading", progress: 1, total: 2 });
      return { content: "a.txt", isError: false };
    },
  };
  const openai = await client(createWorld({ tools: provider(list) }));
  world.chat.script = [
    { type: "content", text: "Let me see." },
    ...callEvents(call),
    { type: "hold", calls: [call], usage },
    { type: "content", text: "There is a.txt." },
    finish("stop"),
  ];
  const body = { model: "default", messages, ...(isAsked && { fermata: { tool_status: true } }) };
  const stream = openai.chat.completions.stream(body);
  const told: Record<string, unknown>[] = [];
  for await (const chunk of stream) {
    const { tool_status: status } = chunk as { tool_status?: Record<string, unknown> };
    if (status === undefined) continue;
    told.push(status);
    expect(chunk.choices).toMatchObject([{ index: 0, delta: {}, finish_reason: null }]);
  }
  const { choices } = await stream.finalChatCompletion();
  expect(choices[0]!.message.content).toBe("Let me see.\n\nThere is a.txt.");
  expect(choices[0]!.message.tool_calls).toBeUndefined();
  const place = { call_id: "call_1", name: "list_files", server: "files" };
  expect(told).toEqual(
    isAsked
      ? [
          { ...place, state: "running" },
          { ...place, state: "running", message: "reading", progress: 1, total: 2 },
          { ...place, state: "done", milliseconds: expect.any(Number) },
        ]
      : [],
  );
  const { paths } = (await world.app.inject({ url: "/openapi.json" })).json();
  const { content } = paths["/v1/chat/completions"].post.responses["200"];
  const schema = content["text/event-stream"]["x-events"]["chat.completion.chunk"] as object;
  const ajv = new Ajv2020();
  for (const status of told)
    expect(ajv.validate(schema, { tool_status: status }), ajv.errorsText()).toBe(true);
});

test.each<[unknown, string]>([
  [true, "fermata"],
  [{ tool_status: "yes" }, "fermata.tool_status"],
  [{ toolStatus: true }, "fermata.toolStatus"],
])("fermata: %j is refused", async (fermata, param) => {
  world = createWorld();
  const reply = await world.app.inject({
    method: "POST",
    url: "/v1/chat/completions",
    payload: { messages, fermata },
  });
  expect([reply.statusCode, reply.json().error.param]).toEqual([400, param]);
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
