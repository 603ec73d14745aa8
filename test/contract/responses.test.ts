/** The Responses API on the wire, and as the official client reads it. */

import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  provider,
  sseEvents,
  type World,
} from "./fake-services.ts";

const call = { id: "call_1", name: "list_files", arguments: '{"path":"."}' };
const listFiles = {
  type: "function" as const,
  name: "list_files",
  parameters: { type: "object", properties: {} },
  strict: false,
};
let world: World;

afterEach(() => world.app.close());

async function client(created: World): Promise<OpenAI> {
  world = created;
  const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "EMPTY", maxRetries: 0 });
}

function create(body: object) {
  return world.app.inject({ method: "POST", url: "/v1/responses", payload: body });
}

interface Event {
  type: string;
  sequence_number: number;
  [key: string]: unknown;
}

async function streamed(body: object): Promise<Event[]> {
  const response = await create({ ...body, stream: true });
  expect(response.statusCode).toBe(200);
  const blocks = response.body.split("\n\n").filter((block) => block.includes("data: {"));
  const events = blocks.map((block) => {
    const [name, data] = block.split("\n");
    const event = JSON.parse(data!.slice("data: ".length)) as Event;
    expect(name).toBe(`event: ${event.type}`);
    return event;
  });
  expect(response.body.endsWith("data: [DONE]\n\n")).toBe(true);
  return events;
}

describe("create", () => {
  test("a text answer has all 31 keys, and more", async () => {
    world = createWorld();
    await create({ input: "Hi", instructions: "" });
    expect(world.chat.requests.pop()!.messages).toEqual([{ role: "user", content: "Hi" }]);
    const body = (await create({ input: "Hi", instructions: "Be brief." })).json();
    expect(body).toMatchObject({
      object: "response",
      status: "completed",
      model: "tiny",
      instructions: "Be brief.",
      output: [
        {
          type: "message",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: "Hello.", annotations: [], logprobs: [] }],
        },
      ],
      usage: {
        input_tokens: 25,
        input_tokens_details: { cached_tokens: 12 },
        output_tokens: 7,
        total_tokens: 32,
      },
    });
    const required =
      "id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key";
    expect(Object.keys(body)).toEqual(expect.arrayContaining(required.split(" ")));
    expect(world.chat.requests[0]!.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ]);
  });

  test("events of a text answer, one after the other", async () => {
    world = createWorld();
    world.chat.script = [
      { type: "reasoning", text: "Hm." },
      { type: "content", text: "Hel" },
      { type: "content", text: "lo." },
      finish("stop"),
    ];
    const events = await streamed({ input: "Hi" });
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.reasoning_text.delta",
      "response.reasoning_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
  });

  test("the SDK's stream helper puts text and two calls together", async () => {
    const openai = await client(createWorld());
    const bare = { id: "call_2", name: "list_files", arguments: "{}" };
    world.chat.script = [
      { type: "content", text: "Let me see." },
      ...callEvents(call),
      { type: "call-start", index: 1, id: bare.id, name: bare.name },
      { type: "call-end", index: 1, call: bare },
      finish("tool_calls", [call, bare]),
    ];
    const stream = openai.responses.stream({ model: "default", input: "Hi", tools: [listFiles] });
    const seen: string[] = [];
    stream.on("response.function_call_arguments.delta", (event) => seen.push(event.delta));
    const response = await stream.finalResponse();
    expect(response.status).toBe("completed");
    expect(response.output).toMatchObject([
      { type: "message", content: [{ text: "Let me see." }] },
      { type: "function_call", call_id: "call_1", name: "list_files", arguments: '{"path":"."}' },
      { type: "function_call", call_id: "call_2", name: "list_files", arguments: "{}" },
    ]);
    expect(seen.join("")).toBe('{"path":"."}{}');
  });

  test("a cut answer is incomplete, and so is its last item", async () => {
    world = createWorld();
    world.chat.script = [
      { type: "call-start", index: 0, id: "call_1", name: "list_files" },
      { type: "call-arguments", index: 0, delta: '{"pa' },
      finish("length"),
    ];
    const events = await streamed({ input: "Hi", tools: [listFiles] });
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: {
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
        output: [{ type: "function_call", status: "incomplete", arguments: '{"pa' }],
      },
    });
  });

  test("one that was cut inside a call before its name has an incomplete item", async () => {
    world = createWorld();
    world.chat.script = [finish("length")];
    const events = await streamed({ input: "Hi", tools: [listFiles] });
    const item = { type: "message", status: "incomplete", content: [{ text: "" }] };
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "max_output_tokens" }, output: [item] },
    });
    expect(events.map(({ type }) => type)).toContain("response.output_item.done");
  });

  test("a failure before the stream opens has its status, a later one is its last event", async () => {
    world = createWorld();
    world.chat.script = [{ fail: new FermataError("queue_full", "Full.") }];
    expect((await create({ input: "Hi", stream: true })).statusCode).toBe(429);
    world.chat.script = [
      { type: "content", text: "Hel" },
      { fail: new FermataError("decode_failed", "The engine failed.") },
    ];
    const events = await streamed({ input: "Hi" });
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: {
        status: "failed",
        error: { code: "server_error", message: "The engine failed." },
        output: [{ type: "message", status: "incomplete" }],
      },
    });
    const whole = await create({ input: "Hi" });
    expect(whole.statusCode).toBe(500);
    expect(whole.json().error).toMatchObject({
      code: "decode_failed",
      message: "The engine failed.",
    });
  });

  test("/codex/responses is the same door", async () => {
    world = createWorld();
    const response = await world.app.inject({
      method: "POST",
      url: "/codex/responses",
      payload: { input: "Hi", stream: true },
    });
    expect(sseEvents(response.body.replaceAll(/^event: .*\n/gm, "")).at(0)).toMatchObject({
      type: "response.created",
    });
  });
});

describe("tools", () => {
  test("functions of a namespace are flat for the model and restored in the answer", async () => {
    world = createWorld();
    const flat = { id: "call_1", name: "mcp__fs__list_directory", arguments: "{}" };
    world.chat.script = [...callEvents(flat), finish("tool_calls", [flat])];
    const tool = { type: "function", name: "list_directory", parameters: { type: "object" } };
    const namespace = { type: "namespace", name: "mcp__fs", tools: [tool] };
    const earlier = {
      type: "function_call",
      call_id: "call_0",
      name: "list_directory",
      namespace: "mcp__fs",
      arguments: "{}",
    };
    const output = { type: "function_call_output", call_id: "call_0", output: "a" };
    const { output: items } = (
      await create({
        input: [{ role: "user", content: "Hi" }, earlier, output],
        tools: [{ type: "web_search" }, namespace],
      })
    ).json();
    expect(items).toMatchObject([{ name: "list_directory", namespace: "mcp__fs" }]);
    const [request] = world.chat.requests;
    expect(request!.tools.map(({ name }) => name)).toEqual(["mcp__fs__list_directory"]);
    expect(request!.messages[1]).toMatchObject({
      toolCalls: [{ name: "mcp__fs__list_directory" }],
    });
  });

  test("MCP tools of the server run inside, and are told as items", async () => {
    const openai = await client(
      createWorld({
        tools: provider(fakeTool("list_files", { content: "a.txt", isError: false })),
      }),
    );
    world.chat.script = [
      ...callEvents(call),
      {
        type: "hold",
        calls: [call],
        usage: {
          promptTokens: 1,
          cachedTokens: 0,
          resumedTokens: 0,
          prefilledTokens: 1,
          recomputedTokens: 0,
          generatedTokens: 1,
        },
      },
      { type: "content", text: "There is a.txt." },
      finish("stop"),
    ];
    const stream = openai.responses.stream({
      model: "default",
      input: "Hi",
      tools: [{ type: "mcp", server_label: "files", require_approval: "never" }],
    });
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([
      { type: "mcp_list_tools", server_label: "files", tools: [{ name: "list_files" }] },
      {
        type: "mcp_call",
        status: "completed",
        server_label: "files",
        name: "list_files",
        arguments: '{"path":"."}',
        output: "a.txt",
        error: null,
      },
      { type: "message", content: [{ text: "There is a.txt." }] },
    ]);
  });
});

test("log-probabilities are in the deltas, the parts and the item, if they are asked for", async () => {
  world = createWorld();
  const token = (text: string) => ({ bytes: Buffer.from(text), logprob: -0.5, top: [] });
  world.chat.script = [
    { type: "content", text: "Hi", logprobs: [token("H"), token("i")] },
    finish("stop"),
  ];
  const include = ["message.output_text.logprobs"];
  const events = await streamed({ input: "Hi", include });
  const wire = (text: string) => ({
    token: text,
    logprob: -0.5,
    bytes: [...Buffer.from(text)],
    top_logprobs: [],
  });
  const expected = [wire("H"), wire("i")];
  const of = (type: string) => events.find((event) => event.type === `response.${type}`)!;
  expect(of("output_text.delta")).toMatchObject({ delta: "Hi", logprobs: expected });
  expect(of("output_text.done")).toMatchObject({ text: "Hi", logprobs: expected });
  expect(of("content_part.done")).toMatchObject({ part: { logprobs: expected } });
  expect(of("completed")).toMatchObject({
    response: { output: [{ content: [{ logprobs: expected }] }] },
  });
  expect(world.chat.requests[0]!.topLogprobs).toBe(0);
});

test("reasoning.effort goes to the template", async () => {
  world = createWorld();
  await create({ input: "Hi", reasoning: { effort: "none" } });
  expect(world.chat.requests[0]!.templateVariables).toEqual({ reasoning_effort: "none" });
  expect((await create({ input: "Hi", reasoning: { effort: "x" } })).json().error.param).toBe(
    "reasoning.effort",
  );
});

test("a format is repeated with the keys that the request left out", async () => {
  world = createWorld();
  const schema = { type: "object", properties: {} };
  const format = { type: "json_schema", name: "event", schema };
  const { text } = (await create({ input: "Hi", text: { format } })).json();
  expect(text.format).toEqual({ ...format, description: null, strict: false });
  const whole = { ...format, description: "One", strict: true };
  const repeated = (await create({ input: "Hi", text: { format: whole } })).json();
  expect(repeated.text.format).toEqual(whole);
  const plain = (await create({ input: "Hi", text: { format: { type: "text" } } })).json();
  expect(plain.text.format).toEqual({ type: "text" });
});
