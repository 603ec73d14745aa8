/** Ollama's chats and texts over the same chat events. */

import { expect, test } from "vitest";
import {
  callEvents,
  createWorld,
  finish,
  fakeTool,
  provider,
  type World,
} from "./fake-services.ts";

const hello = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const call = { id: "call_1", name: "list_files", arguments: '{"path":"."}' };
const tools = [
  {
    type: "function",
    function: { name: "list_files", description: "Lists.", parameters: { type: "object" } },
  },
];
const counts = {
  total_duration: expect.any(Number),
  load_duration: expect.any(Number),
  // With the tokens of tool results.
  prompt_eval_count: 25,
  prompt_eval_duration: expect.any(Number),
  eval_count: 7,
  eval_duration: expect.any(Number),
};
const head = { model: "tiny", created_at: expect.stringMatching(/^\d{4}-.*Z$/) };

function post({ app }: World, url: string, body: object) {
  return app.inject({ method: "POST", url, payload: body });
}

function linesOf(text: string): Record<string, unknown>[] {
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("a chat is streamed as lines of JSON, thinking and calls among them", async () => {
  const world = createWorld();
  world.chat.script = [
    { type: "reasoning", text: "Hm." },
    { type: "content", text: "Let me " },
    { type: "content", text: "see." },
    ...callEvents(call),
    finish("tool_calls", [call]),
  ];
  const response = await post(world, "/api/chat", { ...hello, tools });
  expect(response.statusCode).toBe(200);
  expect(response.headers["content-type"]).toBe("application/x-ndjson");
  const said = (message: object) => ({
    ...head,
    message: { role: "assistant", content: "", ...message },
    done: false,
  });
  expect(linesOf(response.body)).toEqual([
    said({ thinking: "Hm." }),
    said({ content: "Let me " }),
    said({ content: "see." }),
    said({
      tool_calls: [
        { id: "call_1", function: { index: 0, name: "list_files", arguments: { path: "." } } },
      ],
    }),
    {
      ...head,
      message: { role: "assistant", content: "" },
      done: true,
      done_reason: "stop",
      ...counts,
    },
  ]);
});

test("each call of a streamed answer has its own index", async () => {
  const world = createWorld();
  const other = { ...call, id: "call_2" };
  world.chat.script = [...callEvents(call), ...callEvents(other, 1), finish("tool_calls")];
  const { body } = await post(world, "/api/chat", { ...hello, tools });
  const calls = linesOf(body).flatMap(
    ({ message }) => (message as { tool_calls?: object[] }).tool_calls ?? [],
  );
  expect(calls).toMatchObject([
    { id: "call_1", function: { index: 0 } },
    { id: "call_2", function: { index: 1 } },
  ]);
});

test.each([
  ["", {}],
  [" ", {}],
  ["5", { text: "5" }],
  ['["."]', { text: '["."]' }],
  ['{"path"', { text: '{"path"' }],
])("arguments %j of a call are the object %j", async (written, told) => {
  const world = createWorld();
  world.chat.script = [...callEvents({ ...call, arguments: written }), finish("tool_calls")];
  const { body } = await post(world, "/api/chat", { ...hello, tools });
  const { message } = linesOf(body)[0] as { message: { tool_calls: Record<string, object>[] } };
  expect(message.tool_calls[0]!["function"]).toEqual({
    index: 0,
    name: "list_files",
    arguments: told,
  });
});

test.each([true, false])("numbers of arguments keep their digits, streamed: %s", async (stream) => {
  const world = createWorld();
  const written = '{"id":1234567890123456789,"near":1.0,"text":"1234567890123456789"}';
  const exact = { ...call, arguments: written };
  world.chat.script = [...callEvents(exact), finish("tool_calls", [exact])];
  const { body, headers } = await post(world, "/api/chat", { ...hello, tools, stream });
  expect(body).toContain(`"arguments":${written}`);
  expect(headers["content-type"]).toContain("json");
});

test("the digits of a call's arguments stand in the prompt as they came", async () => {
  const world = createWorld();
  const written = '{"id":1234567890123456789,"list":[-9007199254740993]}';
  const calls = [{ function: { name: "list_files", arguments: "WRITTEN" } }];
  const messages = [...hello.messages, { role: "assistant", content: "", tool_calls: calls }];
  const response = await world.app.inject({
    method: "POST",
    url: "/api/chat",
    headers: { "content-type": "application/json" },
    payload: JSON.stringify({ ...hello, messages, tools }).replace('"WRITTEN"', written),
  });
  expect(response.statusCode).toBe(200);
  expect(world.chat.requests[0]!.messages[1]).toMatchObject({
    toolCalls: [{ name: "list_files", arguments: written }],
  });
});

test("a raw prompt has no place for a system message", async () => {
  const body = { model: "tiny", prompt: "Hi", raw: true, system: "Be short." };
  const response = await post(createWorld(), "/api/generate", body);
  expect(response.statusCode).toBe(400);
  expect(response.json().error).toContain("system");
});

test("a chat as one object", async () => {
  const world = createWorld();
  world.chat.script = [
    { type: "reasoning", text: "Hm." },
    { type: "content", text: "Yes" },
    finish("length"),
  ];
  const response = await post(world, "/api/chat", { ...hello, stream: false });
  expect(response.json()).toEqual({
    ...head,
    message: { role: "assistant", content: "Yes", thinking: "Hm." },
    done: true,
    done_reason: "length",
    ...counts,
  });
});

test("options, format and thinking reach the chat", async () => {
  const world = createWorld();
  const schema = { type: "object", properties: { age: { type: "integer" } } };
  await post(world, "/api/chat", {
    ...hello,
    format: schema,
    think: false,
    keep_alive: "5m",
    options: { temperature: 0.3, seed: 4, num_predict: 9, stop: ["END"], top_k: 5, num_ctx: 8192 },
  });
  await post(world, "/api/chat", {
    ...hello,
    think: "high",
    format: "json",
    options: { num_predict: -1 },
  });
  const [first, second] = world.chat.requests;
  expect(first).toMatchObject({
    stop: ["END"],
    maxTokens: 9,
    sampling: { temperature: 0.3, seed: 4, topK: 5 },
    templateVariables: { enable_thinking: false },
    guidance: { document: { kind: "json_schema", schema, strict: false } },
  });
  expect(second).toMatchObject({
    templateVariables: { reasoning_effort: "high" },
    guidance: { document: { kind: "json_object" } },
  });
  expect(second?.maxTokens).toBeUndefined();
});

test("results find their calls without ids: by name, else in order", async () => {
  const world = createWorld();
  const ask = (name: string, args: object) => ({ function: { name, arguments: args } });
  const messages = [
    { role: "user", content: "Compare." },
    {
      role: "assistant",
      content: "",
      tool_calls: [ask("a", { x: 1 }), ask("b", {}), ask("b", {})],
    },
    { role: "tool", tool_name: "b", content: "B1" },
    { role: "tool", content: "A" },
    { role: "tool", content: "B2" },
  ];
  await post(world, "/api/chat", { ...hello, messages, tools });
  expect(world.chat.requests[0]?.messages.slice(1)).toEqual([
    {
      role: "assistant",
      content: "",
      toolCalls: [
        { id: "call_1_0", name: "a", arguments: '{"x":1}' },
        { id: "call_1_1", name: "b", arguments: "{}" },
        { id: "call_1_2", name: "b", arguments: "{}" },
      ],
    },
    { role: "tool", toolCallId: "call_1_1", name: "b", content: "B1" },
    { role: "tool", toolCallId: "call_1_0", name: "a", content: "A" },
    { role: "tool", toolCallId: "call_1_2", name: "b", content: "B2" },
  ]);
  const lost = [...messages, { role: "tool", content: "B3" }];
  const refused = await post(world, "/api/chat", { ...hello, messages: lost });
  expect(refused.statusCode).toBe(400);
  expect(refused.json()).toMatchObject({
    code: "invalid_value",
    param: "messages[5].tool_call_id",
  });
});

test("a role is read in any case", async () => {
  const world = createWorld();
  const messages = [
    { role: "System", content: "A" },
    { role: "USER", content: "Hi" },
  ];
  const reply = await post(world, "/api/chat", { ...hello, messages });
  expect(reply.statusCode).toBe(200);
  expect(world.chat.requests[0]?.messages).toEqual([
    { role: "system", content: "A" },
    { role: "user", content: "Hi" },
  ]);
});

test("a system message that does not lead is a user's", async () => {
  const world = createWorld();
  const messages = [
    { role: "system", content: "A" },
    { role: "system", content: "B" },
    { role: "user", content: "Hi" },
    { role: "system", content: "C" },
  ];
  await post(world, "/api/chat", { ...hello, messages });
  expect(world.chat.requests[0]?.messages).toEqual([
    { role: "system", content: "A" },
    { role: "system", content: "B" },
    { role: "user", content: "Hi" },
    { role: "user", content: "C" },
  ]);
});

test("without tools of its own, a chat has the server's", async () => {
  const world = createWorld({
    tools: provider(fakeTool("read", { content: "12", isError: false })),
  });
  const held = { id: "call_1", name: "read", arguments: "{}" };
  world.chat.script = [
    ...callEvents(held),
    { type: "hold", calls: [held], usage: finishUsage() },
    { type: "content", text: "It is 12." },
    finish("stop"),
  ];
  const response = await post(world, "/api/chat", { ...hello, stream: false });
  expect(response.json()).toMatchObject({ message: { role: "assistant", content: "It is 12." } });
  expect(response.json().message).not.toHaveProperty("tool_calls");
});

function finishUsage() {
  const event = finish("stop");
  if (event.type !== "finish") throw new TypeError("no finish");
  return event.usage;
}

test("a prompt is put into the template, unless it is raw", async () => {
  const world = createWorld();
  const asked = { model: "tiny:latest", prompt: "Why?", system: "Be brief.", stream: false };
  const templated = await post(world, "/api/generate", asked);
  expect(templated.json()).toEqual({
    ...head,
    model: "tiny:latest",
    response: "Hello.",
    done: true,
    done_reason: "stop",
    // Of the prompt; the script draws no tokens.
    context: [5, 6, 7],
    ...counts,
  });
  expect(world.chat.requests[0]?.messages).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Why?" },
  ]);
  const raw = await post(world, "/api/generate", {
    ...asked,
    system: "",
    raw: true,
    options: { num_predict: 2 },
  });
  expect(raw.json()).toMatchObject({
    response: "ye",
    done_reason: "length",
    prompt_eval_count: 4,
    eval_count: 2,
  });
  expect(world.text.requests[0]).toMatchObject({
    prompt: Int32Array.from([87, 104, 121, 63]),
    owner: "anonymous",
  });
});

test("of a raw prompt's format, a keyword that no mask can hold is left out", async () => {
  const world = createWorld();
  const format = {
    type: "object",
    properties: { names: { type: "string", pattern: "^(a|b)\\1$" } },
  };
  const asked = { model: "tiny", prompt: "Who?", raw: true, stream: false, format };
  expect((await post(world, "/api/generate", asked)).statusCode).toBe(200);
  expect(world.text.grammars[0]?.text).toContain('"names"');
  expect(world.text.requests[0]?.grammar).toBeDefined();
});

test.each(["/api/chat", "/api/generate"])(
  "%s with nothing to answer loads the model",
  async (url) => {
    const response = await post(createWorld(), url, { model: "tiny", keep_alive: -1 });
    expect(response.json()).toMatchObject({ ...head, done: true, done_reason: "load" });
  },
);

test("tokens that are no text by themselves have log-probabilities in a stream, too", async () => {
  const world = createWorld();
  const token = (byte: number) => ({ bytes: Uint8Array.of(byte), logprob: -0.5, top: [] });
  world.chat.script = [
    { type: "content", text: "", logprobs: [token(195)] },
    { type: "content", text: "é", logprobs: [token(169)] },
    finish("stop"),
  ];
  const reply = await post(world, "/api/chat", { ...hello, logprobs: true });
  const lines = reply.body.trimEnd().split("\n");
  expect(lines.flatMap((one) => JSON.parse(one).logprobs ?? [])).toMatchObject([
    { bytes: [195] },
    { bytes: [169] },
  ]);
});

const bad: [object, string][] = [
  [{ messages: "Hi" }, "messages"],
  [{ messages: [{ role: "robot", content: "Hi" }] }, "messages[0].role"],
  [{ messages: [{ role: "user", content: "Hi", images: ["aGk="] }] }, "messages[0].images"],
  [{ ...hello, options: { temperature: "hot" } }, "options.temperature"],
  [{ ...hello, options: { stop: 3 } }, "options.stop"],
  [{ ...hello, format: "xml" }, "format"],
  [{ ...hello, think: "a lot" }, "think"],
  [{ ...hello, stream: "yes" }, "stream"],
  [{ ...hello, keep_alive: "long" }, "keep_alive"],
  [{ ...hello, tools: [{ type: "function", function: {} }] }, "tools[0].function.name"],
];

test.each(bad)("%j is a 400 in Ollama's shape", async (body, param) => {
  const response = await post(createWorld(), "/api/chat", body);
  expect(response.statusCode).toBe(400);
  expect(response.json()).toEqual({
    error: expect.stringContaining(`"${param}"`),
    code: expect.any(String),
    param,
  });
});

test("a template of /api/generate is a 400 that names the way here", async () => {
  const asked = { prompt: "a", template: "{{ .Prompt }}" };
  const response = await post(createWorld(), "/api/generate", asked);
  expect(response.statusCode).toBe(400);
  const error = expect.stringContaining('"raw"');
  expect(response.json()).toMatchObject({ error, param: "template" });
});

test("an answer has the model's name as it was called", async () => {
  const world = createWorld({ model: { aliases: ["small"] } });
  const answered = async (url: string, model: string, text: object) =>
    (await post(world, url, { model, stream: false, ...text })).json().model;
  for (const [called, name] of [
    ["tiny", "tiny"],
    ["tiny:latest", "tiny:latest"],
    ["small:latest", "small:latest"],
    ["default", "tiny"],
    ["other", "tiny"],
  ] as const) {
    expect(await answered("/api/chat", called, { messages: hello.messages })).toBe(name);
    expect(await answered("/api/generate", called, { prompt: "Hi" })).toBe(name);
    expect(await answered("/api/generate", called, { prompt: "" })).toBe(name);
  }
});

test("a failure in the middle of a stream is its last line", async () => {
  const world = createWorld();
  world.chat.script = [{ type: "content", text: "Hel" }, { fail: new Error("lost") }];
  const response = await post(world, "/api/chat", hello);
  expect(linesOf(response.body).at(-1)).toMatchObject({
    error: expect.any(String),
    code: "internal_error",
  });
});
