/** /v1/messages: what of a request the model reads, and what counting its tokens counts. */

import { expect, test } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { callEvents, createWorld, finish, type World } from "./fake-services.ts";

const hello = { model: "claude", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] };
const tools = [{ name: "list_files", description: "Lists.", input_schema: { type: "object" } }];

function post({ app }: World, body: object, headers: Record<string, string> = {}) {
  return app.inject({ method: "POST", url: "/v1/messages", payload: body, headers });
}

test("system blocks, results and thinking become neutral messages", async () => {
  const world = createWorld();
  const response = await post(world, {
    ...hello,
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=1; cch=5f3a;" },
      { type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } },
      { type: "text", text: "Be kind." },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "Which files?" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "" },
          { type: "text", text: "I look." },
          { type: "tool_use", id: "t1", name: "list_files", input: { path: "." } },
          { type: "tool_use", id: "t2", name: "list_files", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "a.txt" },
          {
            type: "tool_result",
            tool_use_id: "t2",
            is_error: true,
            content: [
              { type: "text", text: "no" },
              { type: "text", text: "such folder" },
            ],
          },
          { type: "text", text: "And now?" },
        ],
      },
    ],
    tools: [...tools, { type: "web_search_20250305", name: "web_search" }],
    temperature: 0.5,
    top_k: 5,
  });
  expect(response.statusCode).toBe(200);
  const [request] = world.chat.requests;
  expect(request!.messages).toEqual([
    { role: "system", content: "Be brief.\n\nBe kind." },
    { role: "user", content: "Which files?" },
    {
      role: "assistant",
      content: "I look.",
      reasoning: "Hm.",
      toolCalls: [
        { id: "t1", name: "list_files", arguments: '{"path":"."}' },
        { id: "t2", name: "list_files", arguments: "{}" },
      ],
    },
    { role: "tool", toolCallId: "t1", name: "list_files", content: "a.txt" },
    { role: "tool", toolCallId: "t2", name: "list_files", content: "Error: no\nsuch folder" },
    { role: "user", content: "And now?" },
  ]);
  expect(request!.tools).toEqual([
    { name: "list_files", description: "Lists.", parameters: { type: "object" } },
  ]);
  expect(request!.sampling).toMatchObject({ temperature: 0.5, topK: 5 });
});

test("tools that Anthropic's models know by their type are told to this one", async () => {
  const world = createWorld();
  const types = [
    { type: "bash_20250124", name: "bash" },
    { type: "text_editor_20250728", name: "str_replace_based_edit_tool", max_characters: 1000 },
    { type: "text_editor_20250124", name: "str_replace_editor" },
    { type: "memory_20250818", name: "memory" },
    { type: "computer_20250124", name: "computer", display_width_px: 1, display_height_px: 1 },
  ];
  const call: ToolCall = { id: "call_1", name: "bash", arguments: '{"command":"ls"}' };
  world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
  const response = await post(world, { ...hello, tools: types });
  expect(response.json().content).toMatchObject([
    { type: "tool_use", name: "bash", input: { command: "ls" } },
  ]);
  const told = world.chat.requests[0]!.tools;
  expect(
    told.map(({ name, parameters }) => [name, Object.keys(parameters["properties"]!)]),
  ).toEqual([
    ["bash", ["command", "restart"]],
    [
      "str_replace_based_edit_tool",
      "command path view_range file_text old_str new_str insert_line insert_text".split(" "),
    ],
    [
      "str_replace_editor",
      "command path view_range file_text old_str new_str insert_line".split(" "),
    ],
    [
      "memory",
      "command path view_range file_text old_str new_str insert_line insert_text old_path new_path".split(
        " ",
      ),
    ],
  ]);
});

test("tools that are loaded amid a conversation stand behind the others", async () => {
  const world = createWorld();
  const input_schema = { type: "object" };
  const named = (name: string, more = {}): object => ({ name, input_schema, ...more });
  const deferred = { defer_loading: true };
  const sent = [named("b"), named("a", deferred), named("d"), named("c", deferred)];
  expect((await post(world, { ...hello, tools: sent })).statusCode).toBe(200);
  expect(world.chat.requests[0]!.tools?.map(({ name }) => name)).toEqual(["b", "d", "a", "c"]);
});

test("count_tokens counts messages and tools without running them", async () => {
  const world = createWorld();
  world.chat.promptTokens = 42;
  const response = await world.app.inject({
    method: "POST",
    url: "/v1/messages/count_tokens",
    payload: { model: "claude", system: "Be brief.", messages: hello.messages, tools },
  });
  expect(response.json()).toEqual({ input_tokens: 42 });
  expect(world.chat.requests).toHaveLength(0);
  expect(world.chat.counted[0]).toMatchObject({
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ],
    tools: [{ name: "list_files" }],
  });
});

test("a last message of the assistant's begins the answer", async () => {
  const world = createWorld();
  const prefilled = { role: "assistant", content: [{ type: "text", text: "Well," }] };
  const messages = [...hello.messages, prefilled];
  const reply = await post(world, { ...hello, messages });
  expect(reply.json().content).toEqual([{ type: "text", text: "Hello.", citations: null }]);
  expect(world.chat.requests[0]).toMatchObject({
    messages: hello.messages,
    prefill: "Well,",
    templateVariables: { enable_thinking: false },
  });
  const format = { type: "json_schema", schema: { type: "object" } };
  const refused = await post(world, { ...hello, messages, output_config: { format } });
  expect(refused.json().error.param).toBe("output_config.format");
});

test("output_format is output_config.format under its earlier name", async () => {
  const world = createWorld();
  const format = { type: "json_schema", schema: { type: "object" } };
  expect((await post(world, { ...hello, output_format: format })).statusCode).toBe(200);
  expect((await post(world, { ...hello, output_config: { format } })).statusCode).toBe(200);
  const [earlier, present] = world.chat.requests.map(({ guidance }) => guidance?.document);
  expect(earlier).toEqual({ ...present, field: "output_format.schema" });
  for (const body of [
    { output_format: format, output_config: { format } },
    { output_format: { type: "xml" } },
    {
      output_format: format,
      messages: [...hello.messages, { role: "assistant", content: "Well," }],
    },
  ])
    expect((await post(world, { ...hello, ...body })).json().error.param).toMatch(/^output_format/);
});

test("an empty last message of the assistant's is none", async () => {
  const world = createWorld();
  const messages = [...hello.messages, { role: "assistant", content: "" }];
  expect((await post(world, { ...hello, messages })).statusCode).toBe(200);
  expect(world.chat.requests[0]).toMatchObject({ messages: hello.messages, prefill: "" });
  expect(world.chat.requests[0]!.messages).toHaveLength(1);
});

test.each([
  [{ output_config: { effort: "low" } }, { reasoning_effort: "low" }],
  [
    { output_config: { effort: "max" }, thinking: { type: "adaptive" } },
    { reasoning_effort: "max", enable_thinking: true },
  ],
  [
    { output_config: { effort: "high" }, thinking: { type: "disabled" } },
    { reasoning_effort: "high", enable_thinking: false },
  ],
])("%j reaches the template", async (body, templateVariables) => {
  const world = createWorld();
  expect((await post(world, { ...hello, ...body })).statusCode).toBe(200);
  const payload = { messages: hello.messages, ...body };
  await world.app.inject({ method: "POST", url: "/v1/messages/count_tokens", payload });
  expect([world.chat.requests[0], world.chat.counted[0]]).toMatchObject([
    { templateVariables },
    { templateVariables },
  ]);
  const wrong = await post(world, { ...hello, output_config: { effort: "enormous" } });
  expect(wrong.json().error.param).toBe("output_config.effort");
});

test("tokens are counted as the answer would begin", async () => {
  const { app, chat } = createWorld();
  const messages = [...hello.messages, { role: "assistant", content: "Well," }];
  const payload = { messages, thinking: { type: "disabled" } };
  await app.inject({ method: "POST", url: "/v1/messages/count_tokens", payload });
  expect(chat.counted[0]).toMatchObject({
    messages: hello.messages,
    prefill: "Well,",
    templateVariables: { enable_thinking: false },
  });
});

test("a conversation in which Anthropic's servers ran tools goes on without them", async () => {
  const world = createWorld();
  const id = "srvtoolu_1";
  const content = [
    { type: "server_tool_use", id, name: "web_search", input: { query: "weather" } },
    { type: "web_search_tool_result", tool_use_id: id, content: [] },
    { type: "text", text: "It rains." },
  ];
  const [first] = hello.messages;
  const messages = [first, { role: "assistant", content }, { role: "user", content: "Thanks" }];
  expect((await post(world, { ...hello, messages })).statusCode).toBe(200);
  expect(world.chat.requests[0]!.messages[1]).toEqual({ role: "assistant", content: "It rains." });
  const unknown = [{ type: "hologram" }];
  const refused = await post(world, {
    ...hello,
    messages: [first, { role: "assistant", content: unknown }, first],
  });
  expect(refused.statusCode).toBe(400);
});

const inputOf = (input: string) =>
  JSON.stringify({
    ...hello,
    messages: [
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "t1", name: "find", input: "INPUT" }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "ok" }] },
    ],
    tools,
  }).replace('"INPUT"', input);

function postText({ app }: World, url: string, payload: string) {
  const headers = { "content-type": "application/json" };
  return app.inject({ method: "POST", url, headers, payload });
}

test.each([
  ["a whole number", '{"id":1234567890123456789,"é":[{"near":[-9007199254740993]}]}'],
  ["a fraction", '{"at":0.12345678901234567890,"unit":"m","big":1e25}'],
  ["texts that look like it", '{"a":"1234567890123456789","b\\\\":"\\"1234567890123456789"}'],
  ["what a number keeps", '{"a":0.30000000000000004,"b":9007199254740992,"c":1e+21}'],
])("an input's digits stand in the prompt as they came: %s", async (_what, input) => {
  const world = createWorld();
  const response = await postText(world, "/v1/messages", inputOf(input));
  expect(response.statusCode).toBe(200);
  const [, called] = world.chat.requests[0]!.messages.map((one) => one.role);
  expect(called).toBe("tool");
  expect(world.chat.requests[0]!.messages[0]).toMatchObject({
    toolCalls: [{ id: "t1", name: "find", arguments: input }],
  });
});

test("other fields read a number of many digits as a number", async () => {
  const world = createWorld();
  const body = JSON.stringify({ ...hello, temperature: 77 });
  await postText(world, "/v1/messages", body.replace("77", "0.69999999999999995559"));
  expect(world.chat.requests[0]!.sampling.temperature).toBe(0.7);
});

test.each([
  ["4e444", '{"near":[1,{"far":4e444}]}'],
  ["-1E+400", '{"near":[1,{"far":-1E+400}]}'],
  ["400 digits", `{"near":[1,{"far":${"9".repeat(400)}}]}`],
])("a number that is none to JavaScript is refused: %s", async (_what, input) => {
  const world = createWorld();
  const response = await postText(world, "/v1/messages", inputOf(input));
  expect(response.statusCode).toBe(400);
  expect(response.json().error).toMatchObject({
    type: "invalid_request_error",
    message: expect.stringContaining('"messages[0].content[0].input.near[1].far" is a number of'),
  });
  expect(world.chat.requests).toEqual([]);
});

test.each(["1e5", "1234567890123456789"])("a number is no name: %s", async (name) => {
  const world = createWorld();
  const response = await postText(world, "/v1/messages", inputOf(`{${name}:2}`));
  expect(response.statusCode).toBe(400);
  expect(response.json().error.message).toContain("not valid JSON");
});

test.each(["1234567890123456789-1", "01234567890123456789", "1e5e5", "1.e5", "-e5"])(
  "what is no number stays no JSON: %s",
  async (number) => {
    const world = createWorld();
    const response = await postText(world, "/v1/messages", inputOf(`{"a":${number}}`));
    expect(response.statusCode).toBe(400);
    expect(response.json().error.message).toContain("not valid JSON");
  },
);
