/** /v1/messages: Anthropic's wire format over the same chat events. */

import { expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import { callEvents, createWorld, finish, type World } from "./fake-services.ts";

const hello = { model: "claude", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] };
const call = { id: "call_1", name: "list_files", arguments: '{"path":"."}' };
const tools = [{ name: "list_files", description: "Lists.", input_schema: { type: "object" } }];
const wireUsage = {
  input_tokens: 1,
  cache_creation_input_tokens: 12,
  cache_read_input_tokens: 12,
  output_tokens: 7,
};

function post({ app }: World, body: object, headers: Record<string, string> = {}) {
  return app.inject({ method: "POST", url: "/v1/messages", payload: body, headers });
}

interface NamedEvent {
  event: string;
  data: { type: string; [key: string]: unknown };
}

function namedEvents(text: string): NamedEvent[] {
  return text
    .split("\n\n")
    .filter((block) => block.startsWith("event: "))
    .map((block) => {
      const [, event, data] = /^event: (.+)\ndata: (.+)$/.exec(block)!;
      return { event: event!, data: JSON.parse(data!) as NamedEvent["data"] };
    });
}

test("an answer in thinking, text and tool_use blocks", async () => {
  const world = createWorld();
  world.chat.script = [
    { type: "reasoning", text: "Hm." },
    { type: "content", text: "Let me see." },
    ...callEvents(call),
    finish("tool_calls", [call]),
  ];
  const response = await post(world, { ...hello, tools });
  expect(response.statusCode).toBe(200);
  expect(response.json()).toEqual({
    id: expect.stringMatching(/^msg_[0-9a-f]{24}$/),
    type: "message",
    role: "assistant",
    model: "tiny",
    content: [
      { type: "thinking", thinking: "Hm.", signature: expect.any(String) },
      { type: "text", text: "Let me see.", citations: null },
      { type: "tool_use", id: "call_1", name: "list_files", input: { path: "." } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: wireUsage,
  });
});

test.each([
  '{"id":1234567890123456789,"near":1.0,"far":1e400}',
  '{"text":"1234567890123456789","mark":"\\u0000number 1.0"}',
])("the digits of an input are those that were written: %s", async (written) => {
  const world = createWorld();
  const exact = { ...call, arguments: written };
  world.chat.script = [...callEvents(exact), finish("tool_calls", [exact])];
  const response = await post(world, { ...hello, tools });
  expect(response.headers["content-type"]).toContain("application/json");
  expect(response.body).toContain(`"input":${written}`);
});

test("blocks stand in the order in which they were written, a cut call last", async () => {
  const world = createWorld();
  world.chat.script = [
    { type: "content", text: "First." },
    { type: "reasoning", text: "Hm" },
    { type: "reasoning", text: "." },
    { type: "content", text: "" },
    { type: "content", text: "Then" },
    ...callEvents(call),
    { type: "content", text: "and" },
    { type: "call-start", index: 1, id: "call_2", name: "list_files" },
    { type: "call-arguments", index: 1, delta: '{"pa' },
    finish("length", []),
  ];
  const thinking = { type: "thinking", thinking: "Hm.", signature: expect.any(String) };
  expect((await post(world, { ...hello, tools })).json().content).toEqual([
    { type: "text", text: "First.", citations: null },
    thinking,
    { type: "text", text: "Then", citations: null },
    { type: "tool_use", id: "call_1", name: "list_files", input: { path: "." } },
    { type: "text", text: "and", citations: null },
    { type: "tool_use", id: "call_2", name: "list_files", input: { arguments: '{"pa' } },
  ]);
});

test("the stream: a block for each kind, in order, deltas that add up", async () => {
  const world = createWorld();
  world.chat.script = [
    { type: "progress", done: 1, total: 2, cached: 0 },
    { type: "reasoning", text: "H" },
    { type: "reasoning", text: "m." },
    { type: "content", text: "Let me " },
    { type: "content", text: "see." },
    ...callEvents(call),
    { type: "call-start", index: 1, id: "call_2", name: "list_files" },
    { type: "call-end", index: 1, call: { ...call, id: "call_2", arguments: "{}" } },
    finish("tool_calls", [call]),
  ];
  const response = await post(world, { ...hello, tools, stream: true });
  expect(response.headers["content-type"]).toMatch(/^text\/event-stream/);
  const events = namedEvents(response.body);
  expect(events.every(({ event, data }) => event === data.type)).toBe(true);
  expect(events.map(({ data }) => data)).toMatchObject([
    { type: "message_start", message: { role: "assistant", content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "H" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "m." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta" } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Let me " } },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "see." } },
    { type: "content_block_stop", index: 1 },
    {
      type: "content_block_start",
      index: 2,
      content_block: { type: "tool_use", id: "call_1", name: "list_files", input: {} },
    },
    { index: 2, delta: { type: "input_json_delta", partial_json: '{"path' } },
    { index: 2, delta: { type: "input_json_delta", partial_json: '":"."}' } },
    { type: "content_block_stop", index: 2 },
    { type: "content_block_start", index: 3, content_block: { id: "call_2" } },
    { index: 3, delta: { type: "input_json_delta", partial_json: "{}" } },
    { type: "content_block_stop", index: 3 },
    {
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: wireUsage,
    },
    { type: "message_stop" },
  ]);
});

test("arguments that are no JSON object never reach the client as pieces", async () => {
  const world = createWorld();
  const broken = { ...call, arguments: '{"path": oops}' };
  world.chat.script = [...callEvents(broken), finish("tool_calls", [broken])];
  const streamed = await post(world, { ...hello, tools, stream: true });
  const pieces = namedEvents(streamed.body)
    .map(({ data }) => (data["delta"] as { partial_json?: string } | undefined)?.partial_json)
    .join("");
  expect(pieces).toBe('{"path": ');
  const whole = await post(world, { ...hello, tools });
  expect(whole.json().content[0].input).toEqual({ arguments: '{"path": oops}' });
});

test.each([
  [finish("stop"), { stop_reason: "end_turn", stop_sequence: null }],
  [finish("length"), { stop_reason: "max_tokens", stop_sequence: null }],
  [
    { ...finish("stop"), stopString: "END" } as ReturnType<typeof finish>,
    { stop_reason: "stop_sequence", stop_sequence: "END" },
  ],
])("stop reason %#", async (end, stop) => {
  const world = createWorld();
  world.chat.script = [{ type: "content", text: "a" }, end];
  expect((await post(world, { ...hello, stop_sequences: ["END"] })).json()).toMatchObject(stop);
  expect(world.chat.requests[0]).toMatchObject({ stop: ["END"], maxTokens: 100 });
});

const user = (content: unknown) => ({ ...hello, messages: [{ role: "user", content }] });
test.each([
  [[], "body"],
  [{ max_tokens: 1 }, "messages"],
  [{ ...hello, messages: [] }, "messages"],
  [{ ...hello, messages: "Hi" }, "messages"],
  [{ ...hello, messages: [{ role: "tool", content: "x" }] }, "messages[0].role"],
  [{ ...hello, messages: [{ role: "user" }] }, "messages[0].content"],
  [user([{ text: "Hi" }]), "messages[0].content[0].type"],
  [user([{ type: "text", text: 1 }]), "messages[0].content[0].text"],
  [user([{ type: "image", source: {} }]), "messages[0].content[0].type"],
  [user([{ type: "tool_result" }]), "messages[0].content[0].tool_use_id"],
  [user([{ type: "tool_result", tool_use_id: "t" }]), "messages[0].content[0].tool_use_id"],
  [user([{ type: "document", source: { type: "url" } }]), "messages[0].content[0].source.type"],
  [{ ...hello, messages: [{ role: "assistant", content: "Well," }] }, "messages[0]"],
  [{ ...hello, system: 1 }, "system"],
  [{ ...hello, max_tokens: -1 }, "max_tokens"],
  [{ ...hello, stop_sequences: "END" }, "stop_sequences"],
  [{ ...hello, stop_sequences: [5] }, "stop_sequences[0]"],
  [{ ...hello, tools: {} }, "tools"],
  [{ ...hello, tools: [{ name: "a b", input_schema: {} }] }, "tools[0].name"],
  [{ ...hello, tools: [{ name: "a" }] }, "tools[0].input_schema"],
  [{ ...hello, tools: [tools[0], { ...tools[0], description: "Other." }] }, "tools[1].name"],
  [{ ...hello, tool_choice: { type: "sometimes" } }, "tool_choice.type"],
  [{ ...hello, thinking: true }, "thinking"],
  [{ ...hello, thinking: { type: "none" } }, "thinking.type"],
  [{ ...hello, container: "c" }, "container"],
])("refused in Anthropic's shape: %#", async (body, param) => {
  const world = createWorld();
  for (const url of ["/v1/messages", "/v1/messages/count_tokens"]) {
    const response = await world.app.inject({ method: "POST", url, payload: body });
    const isCount = url.endsWith("tokens");
    if (isCount && /max_tokens|stop|thinking/.test(param)) continue;
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: expect.any(String),
        code: expect.any(String),
        param,
      },
      request_id: response.headers["x-request-id"],
    });
  }
});

test("a tool that is strict is held to its schema", async () => {
  const world = createWorld();
  world.chat.script = [{ type: "content", text: "Well." }, finish("stop")];
  const payload = { ...hello, tools: [{ ...tools[0], strict: true }] };
  await world.app.inject({ method: "POST", url: "/v1/messages", payload });
  expect(world.chat.requests[0]!.tools).toMatchObject([{ strict: true }]);
});

test.each([
  ["queue_full", 429, "rate_limit_error"],
  ["engine_closed", 503, "overloaded_error"],
  ["decode_failed", 500, "api_error"],
  ["context_length_exceeded", 400, "invalid_request_error"],
] as const)("%s before the stream: %i %s", async (code, status, type) => {
  const world = createWorld();
  world.chat.script = [{ fail: new FermataError(code, "Because.") }];
  const response = await post(world, { ...hello, stream: true });
  expect(response.statusCode).toBe(status);
  expect(response.json().error).toMatchObject({ type, code });
});

test("a thread is refused so that the SDK sends the whole history instead", async () => {
  const response = await post(createWorld(), { ...hello, thread: { type: "create" } });
  expect(response.statusCode).toBe(400);
  expect(response.json().error).toMatchObject({
    param: "thread",
    details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
  expect(response.headers["request-id"]).toBe(response.headers["x-request-id"]);
});

test("a failure in the stream is an error event", async () => {
  const world = createWorld();
  world.chat.script = [
    { type: "content", text: "a" },
    { fail: new FermataError("decode_failed", "Because.") },
  ];
  const response = await post(world, { ...hello, stream: true });
  expect(namedEvents(response.body).at(-1)).toEqual({
    event: "error",
    data: expect.objectContaining({
      error: expect.objectContaining({ type: "api_error", message: "Because." }),
    }),
  });
});

test("keys, unknown methods and JSON errors speak Anthropic's shape here", async () => {
  const world = createWorld({ config: { apiKeys: ["k1"] } });
  expect((await post(world, hello)).json()).toMatchObject({
    type: "error",
    error: { type: "authentication_error" },
  });
  expect((await post(world, hello, { "x-api-key": "k1" })).statusCode).toBe(200);
  const headers = { "x-api-key": "k1", "content-type": "application/json" };
  const broken = await world.app.inject({
    method: "POST",
    url: "/v1/messages",
    payload: "{",
    headers,
  });
  expect(broken.json().error).toMatchObject({ type: "invalid_request_error", param: "body" });
  const get = await world.app.inject({ url: "/v1/messages", headers });
  expect(get.statusCode).toBe(405);
  expect(get.json().type).toBe("error");
});

test("the counts of input add up to the prompt, whatever is cached", async () => {
  const counts: [number, number, number][] = [
    [25, 0, 25],
    [25, 24, 25],
    [25, 25, 25],
  ];
  for (const [promptTokens, cachedTokens, sum] of counts) {
    const world = createWorld();
    const end = finish("stop") as Extract<ReturnType<typeof finish>, { type: "finish" }>;
    const usage = { ...end.usage, promptTokens, cachedTokens, resumedTokens: 0 };
    world.chat.script = [
      { type: "content", text: "Hi" },
      { ...end, usage },
    ];
    const { usage: told } = (await post(world, hello)).json();
    expect(told.cache_read_input_tokens).toBe(cachedTokens);
    const { input_tokens: last, cache_creation_input_tokens: written } = told;
    expect(last + written + cachedTokens).toBe(sum);
  }
});

test("a seed is taken, though Anthropic has none", async () => {
  const world = createWorld();
  expect((await post(world, { ...hello, seed: 7 })).statusCode).toBe(200);
  expect(world.chat.requests[0]!.sampling.seed).toBe(7);
  const refused = await post(world, { ...hello, seed: "x" });
  expect([refused.statusCode, refused.json().error.param]).toEqual([400, "seed"]);
});

test.each(["/v1/models/other", "/models/other"])(
  "an error of %s has its client's shape",
  async (url) => {
    const { app } = createWorld();
    const plain = await app.inject({ url });
    expect(plain.statusCode).toBe(404);
    expect(plain.json()).toMatchObject({ error: { code: "not_found", param: "model" } });
    expect(plain.json()).not.toHaveProperty("type");
    const response = await app.inject({ url, headers: { "anthropic-version": "2023-06-01" } });
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({
      type: "error",
      error: { type: "not_found_error", code: "not_found" },
      request_id: response.headers["request-id"],
    });
  },
);
