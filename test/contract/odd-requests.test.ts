/** Requests that no client should send, and that somebody will: each is the client's mistake, none a fault. */

import { request as httpRequest } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { callEvents, fakeTool, finish, provider } from "./fake-services.ts";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";

let world: ResponsesWorld;
afterEach(() => world.close());

describe("values nested deeper than the stack", () => {
  const levels = 200_000;
  const nested = "[".repeat(levels) + "]".repeat(levels);
  test.each([
    [
      "/v1/chat/completions",
      `{"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"a":NESTED}}`,
    ],
    [
      "/v1/chat/completions",
      `{"messages":[{"role":"user","content":"Hi"}],"tool_choice":"none","tools":[{"type":"function","function":{"name":"f","parameters":{"a":NESTED}}}]}`,
    ],
    [
      "/v1/responses",
      `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":NESTED}]}`,
    ],
    [
      "/v1/messages",
      `{"max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":NESTED}}]},{"role":"user","content":"Hi"}]}`,
    ],
    [
      "/api/conversations",
      `{"response_format":{"type":"json_schema","json_schema":{"schema":{"a":NESTED}}}}`,
    ],
    ["/v1/conversations", `{"items":[{"type":"mcp_list_tools","tools":NESTED}]}`],
  ])("%s: %s", async (url, body) => {
    world = await createResponsesWorld();
    const reply = await world.app.inject({
      method: "POST",
      url,
      headers: { "content-type": "application/json" },
      payload: body.replace("NESTED", nested),
    });
    expect(reply.statusCode).toBe(400);
    expect(reply.json().error).toMatchObject({ code: "invalid_json", param: "body" });
  });

  test("brackets in strings are no levels", async () => {
    world = await createResponsesWorld();
    const content = `${"[{".repeat(5000)} "quoted \\\\" ${"[".repeat(5000)}\\`;
    const { status } = await world.call("POST", "/v1/chat/completions", {
      messages: [{ role: "user", content }],
    });
    expect(status).toBe(200);
    expect(world.chat.requests[0]!.messages[0]!.content).toBe(content);
  });
});

describe("names that objects have by themselves are data", () => {
  const schema =
    '{"type":"object","properties":{"__proto__":{"type":"integer"},"constructor":{"prototype":{}}}}';
  const input = '{"__proto__":{"toString":12345678901234567890},"constructor":{"prototype":[1e2]}}';
  const send = (url: string, payload: string) =>
    world.app.inject({
      method: "POST",
      url,
      headers: { "content-type": "application/json" },
      payload,
    });
  const isUntouched = () => expect(({} as Json)["toString"]).toBe(Object.prototype.toString);

  test("in a tool's schema", async () => {
    world = await createResponsesWorld();
    const tool = `{"type":"function","function":{"name":"f","parameters":${schema}}}`;
    const body = `{"messages":[{"role":"user","content":"Hi"}],"tools":[${tool}],"__proto__":{"n":2}}`;
    const reply = await send("/v1/chat/completions", body);
    expect([reply.statusCode, reply.json().choices.length]).toEqual([200, 1]);
    expect(JSON.stringify(world.chat.requests[0]!.tools[0]!.parameters)).toBe(schema);
    isUntouched();
  });

  test.each([
    [
      "/v1/messages",
      `{"max_tokens":5,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}]}`,
    ],
    [
      "/api/chat",
      `{"stream":false,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":${input}}}]},{"role":"tool","content":"a"}]}`,
    ],
  ])("in arguments, with their numbers as they are written: %s", async (url, body) => {
    world = await createResponsesWorld();
    const reply = await send(url, body);
    expect(reply.statusCode, reply.body).toBe(200);
    expect(world.chat.requests[0]!.messages[1]!).toMatchObject({
      toolCalls: [{ name: "f", arguments: input }],
    });
    isUntouched();
  });
});

test.each([
  "/api/conversations/conv_1/stream?run_id=a&run_id=b",
  "/api/conversations?limit=1&limit=2",
  "/api/conversations?before=a&before=b",
  "/v1/responses/resp_1?stream=true&stream=true",
])("a parameter given twice: %s", async (url) => {
  world = await createResponsesWorld();
  const reply = await world.app.inject({ url });
  expect(reply.statusCode).toBe(400);
  const name = /[?&](\w+)=/.exec(url)![1];
  expect(reply.json().error).toMatchObject({ code: "invalid_value", param: name });
});

test("what a list may hold is given as often as it takes", async () => {
  world = await createResponsesWorld();
  const reply = await world.app.inject({ url: "/v1/responses/resp_1?include[]=a&include[]=b" });
  expect(reply.statusCode).toBe(404);
});

test.each(["content", "summary"])("a reasoning item whose %s has no parts", async (key) => {
  world = await createResponsesWorld();
  const input = [
    { type: "reasoning", [key]: [null] },
    { role: "user", content: "Hi" },
  ];
  const { status, body } = await world.create({ input });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ code: "invalid_type", param: `input[0].${key}[0]` });
});

describe("what takes memory for each of many sequences, or for long", () => {
  const long = "x".repeat(100_000);
  const messages = [{ role: "user", content: "Hi" }];
  const call = { type: "function_call", call_id: long, name: "f", arguments: "{}" };
  const biases = Object.fromEntries(Array.from({ length: 20_000 }, (_, id) => [id, 1]));
  test.each([
    ["/v1/chat/completions", { messages, n: 128, stop: [long] }, "stop[0]"],
    ["/v1/completions", { prompt: "Hi", stop: long }, "stop"],
    ["/v1/completions", { prompt: "Hi", stop: Array(17).fill(long.slice(0, 1000)) }, "stop"],
    ["/v1/messages", { messages, max_tokens: 5, stop_sequences: ["a", long] }, "stop_sequences[1]"],
    ["/v1/chat/completions", { messages, n: 128, logit_bias: biases }, "logit_bias"],
    ["/v1/responses", { input: "Hi", prompt_cache_key: long }, "prompt_cache_key"],
    ["/v1/responses", { input: [call] }, "input[0].call_id"],
    ["/v1/responses", { input: Array.from({ length: 10_001 }, () => messages[0]) }, "input"],
    ["/v1/chat/completions", { messages, chat_template_kwargs: { long } }, "chat_template_kwargs"],
    ["/tokenize", { content: "x".repeat(300_000), with_pieces: true }, "content"],
  ])("%s: %#", async (url, body, param) => {
    world = await createResponsesWorld();
    const reply = await world.call("POST", url, body);
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatchObject({ code: "invalid_value", param });
  });
});

describe("lists so long that looking through them again for each entry would take for ever", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const name = (_: unknown, index: number): string => `tool_${index}`;
  const names = Array.from({ length: 100_000 }, name);
  const tools = names.map((each) => ({ type: "function", function: { name: each } }));

  // A server that takes such lists at all.
  const config = { maxBodyBytes: 64 * 2 ** 20 };

  test("tools and the choice among them", async () => {
    world = await createResponsesWorld({ config });
    const allowed = tools.toReversed();
    const choice = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: allowed } };
    const body = { messages, tools, tool_choice: choice };
    expect((await world.call("POST", "/v1/chat/completions", body)).status).toBe(200);
    expect(world.chat.requests[0]!.guidance!.allowed).toHaveLength(names.length);
  });

  test("tools of a message", async () => {
    world = await createResponsesWorld({ config });
    const own = names.map((each) => ({ name: each, input_schema: { type: "object" } }));
    const { status } = await world.call("POST", "/v1/messages", {
      messages,
      max_tokens: 5,
      tools: own,
    });
    expect(status).toBe(200);
  });

  test("references", async () => {
    world = await createResponsesWorld();
    const first = await world.create({ input: [{ id: "msg_1", role: "user", content: "Hi" }] });
    const find = vi.spyOn(world.store.responses, "item");
    const input = Array.from({ length: 10_000 }, () => ({ type: "item_reference", id: "msg_1" }));
    expect((await world.create({ input })).status).toBe(200);
    expect(find).toHaveBeenCalledTimes(1);
    expect(first.status).toBe(200);
  });
});

test("what is ours alone is not taken when it is not known", async () => {
  world = await createResponsesWorld();
  const { status, body } = await world.create({ input: "Hi", fermata: { event: "extended" } });
  expect(status).toBe(400);
  expect(body.error.param).toBe("fermata.event");
});

describe("tools of MCP servers beside others", () => {
  const read = fakeTool("read", { content: "", isError: false });
  const files = { type: "mcp", server_label: "files", require_approval: "never" };

  test.each(["function", "custom"])(
    "a %s of the same name is refused, and both are named",
    async (type) => {
      world = await createResponsesWorld({ tools: provider(read) });
      const own = { type, name: "read" };
      const { status, body } = await world.create({ input: "Hi", tools: [own, files] });
      expect(status).toBe(400);
      expect(body.error).toMatchObject({ code: "invalid_value", param: "tools" });
      expect(body.error.message).toContain(
        `the ${type} "read" and "read" of the MCP server "files"`,
      );
      const left = [own, { ...files, allowed_tools: [] }];
      expect((await world.create({ input: "Hi", tools: left })).status).toBe(200);
    },
  );

  test.each(["starting", "failed", "ready"] as const)(
    "a server without tools (%s)",
    async (state) => {
      const servers = [
        { name: "files", transport: "http", state, error: "gone", tools: [] } as const,
      ];
      const tools = { ...provider(), servers: () => servers.map((one) => ({ ...one, tools: [] })) };
      world = await createResponsesWorld({ tools });
      const { status, body } = await world.create({ input: "Hi", tools: [files] });
      if (state === "ready") return expect([status, body.output[0].tools]).toEqual([200, []]);
      expect(status).toBe(424);
      const { code, param, message } = body.error;
      expect([code, param]).toEqual(["mcp_server_unreachable", "tools[0].server_label"]);
      expect(message).toContain(`its state is "${state}"`);
      const unknown = await world.create({ input: "Hi", tools: [{ ...files, server_label: "x" }] });
      expect(unknown.body.error.message).toContain('no configured server. Send one of "files"');
    },
  );
});

describe("filters of MCP tools", () => {
  const reading = { ...fakeTool("read", { content: "", isError: false }), readOnly: true };
  const writing = fakeTool("write", { content: "", isError: false });
  const offered = async (more: object) => {
    world = await createResponsesWorld({ tools: provider(reading, writing) });
    const tool = { type: "mcp", server_label: "files", require_approval: "never", ...more };
    const { status, body } = await world.create({ input: "Hi", tools: [tool] });
    const names = world.chat.requests[0]?.tools.map(({ name }) => name);
    return { status, names, param: body.error?.param };
  };

  test.each([
    [{}, ["read", "write"]],
    [{ allowed_tools: ["write"] }, ["write"]],
    [{ allowed_tools: { read_only: true } }, ["read"]],
    [{ allowed_tools: { read_only: false } }, ["write"]],
    [{ allowed_tools: { read_only: true, tool_names: ["write"] } }, undefined],
  ])("%j", async (more, names) => {
    const found = await offered(more);
    expect(found.status).toBe(200);
    expect(found.names ?? []).toEqual(names ?? []);
  });

  test("what is not understood lets nothing through", async () => {
    expect(await offered({ allowed_tools: { names: ["read"] } })).toMatchObject({
      status: 400,
      param: "tools[0].allowed_tools.names",
    });
  });

  test("of approvals", async () => {
    const calls = ["read", "write"].map((name) => ({ id: `call_${name}`, name, arguments: "{}" }));
    world = await createResponsesWorld({ tools: provider(reading, writing) });
    const events = calls.flatMap((call) => callEvents(call));
    world.chat.script = [...events, finish("tool_calls", calls)];
    const policy = { never: { read_only: true } };
    const tool = { type: "mcp", server_label: "files", require_approval: policy };
    const { body } = await world.create({ input: "Hi", tools: [tool] });
    const asked = body.output.filter(({ type }: Json) => type === "mcp_approval_request");
    expect(asked.map(({ name }: Json) => name)).toEqual(["write"]);
  });
});

test("a client that leaves while its prompt is prepared is not waited for when the server closes", async () => {
  world = await createResponsesWorld({ config: { drainMs: 60_000 } });
  const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
  const asked = vi.fn();
  let prepare = (): void => {};
  const prepared = new Promise<void>((resolve) => (prepare = resolve));
  const load = world.store.responses.items.bind(world.store.responses);
  world.store.responses.items = async (...args) => {
    asked();
    await prepared;
    return load(...args);
  };
  const previous = await world.create({ input: "Hi" });
  world.chat.script = [{ hang: true }];
  const request = httpRequest(`${url}/v1/responses/compact`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  request.on("error", () => {});
  request.end(JSON.stringify({ model: "tiny", previous_response_id: previous.body.id }));
  await eventually(() => expect(asked).toHaveBeenCalled());
  request.destroy();
  await eventually(async () => expect(await connections(world)).toBe(0));
  prepare();
  await eventually(() => expect(world.chat.cancelledCount).toBe(1));
});

test("a history that is cut for a client that has left is cut no further", async () => {
  world = await createResponsesWorld();
  const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
  let counted = 0;
  let goOn = (): void => {};
  const waiting = new Promise<void>((resolve) => (goOn = resolve));
  world.chat.countPromptTokens = async () => {
    counted += 1;
    await waiting;
    return 1_000_000;
  };
  const request = httpRequest(`${url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  request.on("error", () => {});
  const input = ["one", "two", "three", "four"].map((content) => ({ role: "user", content }));
  request.end(JSON.stringify({ input, truncation: "auto" }));
  await eventually(() => expect(counted).toBe(1));
  request.destroy();
  await eventually(async () => expect(await connections(world)).toBe(0));
  goOn();
  await world.app.close();
  expect(counted).toBe(1);
  expect(world.chat.requests).toEqual([]);
});

function connections({ app }: ResponsesWorld): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
}
