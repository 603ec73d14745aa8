/** Histories that cannot loop, conversations, and compaction. */

import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Tool } from "../../src/tools/types.ts";
import { callEvents, fakeTool, finish, provider } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import { eventually } from "../support/eventually.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";

const tools = [{ type: "function", name: "read_file_chunk" }];
const user = { type: "message", role: "user", content: "please summarize RAG.md" };
let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});

afterEach(() => world.close());

describe("results that a model would not see", () => {
  test("without its type: a 400 that shows the corrected item, and no more than that", async () => {
    const reply = await world.create({ input: [user, { call_id: "call_1", output: "hunter2" }] });
    expect(reply).toMatchObject({ status: 400, body: { error: { param: "input[1].type" } } });
    expect(reply.body.error.message).toContain(
      '{"type":"function_call_output","call_id":"call_1","output":"…"}',
    );
    expect(JSON.stringify([reply.body, world.lines])).not.toContain("hunter2");
  });

  test("without its call: a 400, whether the call is missing, later, or of another chain", async () => {
    const output = { type: "function_call_output", call_id: "call_1", output: "x" };
    const call = { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" };
    const { body } = await world.create({ input: "Hi" });
    for (const request of [
      { input: [user, output] },
      { input: [user, output, call] },
      { input: [output], previous_response_id: body.id },
    ]) {
      const reply = await world.create(request);
      const param = request.input[0] === output ? "input[0].call_id" : "input[1].call_id";
      expect(reply).toMatchObject({ status: 400, body: { error: { param } } });
      expect(reply.body.error.message).toContain('"type":"function_call"');
    }
    // A foreign id is as good as any.
    expect((await world.create({ input: [user, call, output] })).status).toBe(200);
  });

  test.each([
    ["text", "text"],
    [
      [
        { type: "input_text", text: "a" },
        { type: "output_text", text: "b" },
      ],
      "a\nb",
    ],
    [{ eof: true }, '{"eof":true}'],
    [[1, 2], "[1,2]"],
    [[], "[]"],
    [[{ type: "input_image", image_url: "data:" }], "[an image, which the model cannot see]"],
  ])("output %j is read as %j", async (output, text) => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    await world.create({
      input: [user, call, { type: "function_call_output", call_id: "c", output }],
    });
    expect(world.chat.requests[0]!.messages.at(-1)).toMatchObject({ role: "tool", content: text });
  });
});

describe("a client that drops turns", () => {
  test("is told which calls are missing", async () => {
    const first = await turn([user], "call_1");
    const second = await turn([user, ...first], "call_2");
    expect(second.at(-1)).toMatchObject({ call_id: "call_2" });
    const forgetful = await world.create({ input: [user, ...second.slice(-2)], tools });
    expect(forgetful.headers["x-fermata-history-gap"]).toBe("call_1");
    expect(world.lines).toContainEqual(expect.objectContaining({ missing_calls: ["call_1"] }));
    const whole = await world.create({ input: [user, ...first, ...second], tools });
    expect(whole.headers).not.toHaveProperty("x-fermata-history-gap");
  });

  test("by its prompt cache key when it drops them all", async () => {
    await turn([user], "call_1", { prompt_cache_key: "thread" });
    const forgetful = await world.create({ input: [user], prompt_cache_key: "thread" });
    expect(forgetful.headers["x-fermata-history-gap"]).toBe("call_1");
    const other = await world.create({ input: [user], prompt_cache_key: "other" });
    expect(other.headers).not.toHaveProperty("x-fermata-history-gap");
  });

  test("whatever their ids are made of", async () => {
    await turn([user], "é\r\nx: 1,🌊", { prompt_cache_key: "foreign" });
    const forgetful = await world.create({ input: [user], prompt_cache_key: "foreign" });
    expect(forgetful.headers["x-fermata-history-gap"]).toBe("???x:?1???");
  });

  /** @returns the call of the answer, and its output */
  async function turn(input: object[], callId: string, rest: object = {}): Promise<object[]> {
    const call = { id: callId, name: "read_file_chunk", arguments: "{}" };
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const { body } = await world.create({ input, tools, ...rest });
    const output = { type: "function_call_output", call_id: callId, output: "…" };
    return [...body.output, output];
  }
});

describe("reasoning that the client carries", () => {
  const asks = { include: ["reasoning.encrypted_content"], store: false };

  test("comes back as what the model thought", async () => {
    world.chat.script = [
      { type: "reasoning", text: "Rain, so: “umbrella”." },
      { type: "content", text: "Take one." },
      finish("stop"),
    ];
    const { body } = await world.create({ input: [user], ...asks });
    const [reasoning, message] = body.output;
    expect(reasoning.content).toEqual([{ type: "reasoning_text", text: "Rain, so: “umbrella”." }]);
    // As codex and the AI SDK send it.
    const carried = {
      type: "reasoning",
      summary: [],
      encrypted_content: reasoning.encrypted_content,
    };
    await world.create({ input: [user, carried, message, user], ...asks });
    expect(world.chat.requests[1]!.messages[1]).toEqual({
      role: "assistant",
      content: "Take one.",
      reasoning: "Rain, so: “umbrella”.",
    });
    const unasked = await world.create({ input: [user], store: false });
    expect(unasked.body.output[0]).not.toHaveProperty("encrypted_content");
  });

  test("and is passed over if it is another server's", async () => {
    const foreign = { type: "reasoning", summary: [], encrypted_content: "gAAAAABo…" };
    const answer = { role: "assistant", content: "Take one." };
    const { status } = await world.create({ input: [user, foreign, answer, user] });
    expect(status).toBe(200);
    expect(world.chat.requests[0]!.messages[1]).toEqual({
      role: "assistant",
      content: "Take one.",
    });
  });
});

describe("approvals", () => {
  const call = { id: "call_1", name: "list_files", arguments: "{}" };
  const mcp = [{ type: "mcp", server_label: "files" }];
  const hold = { type: "hold" as const, calls: [call], usage };

  beforeEach(async () => {
    await world.close();
    const tool = fakeTool("list_files", { content: "a.txt", isError: false });
    world = await createResponsesWorld({ tools: provider(tool) });
    world.chat.script = [...callEvents(call), hold, finish("stop")];
  });

  test("asked for, given: the call is run, and the model goes on", async () => {
    const asked = await world.create({ input: "Which files?", tools: mcp });
    expect(asked.body.output).toMatchObject([
      { type: "mcp_list_tools" },
      { type: "mcp_approval_request", server_label: "files", name: "list_files", arguments: "{}" },
    ]);
    world.chat.script = [{ type: "content", text: "a.txt" }, finish("stop")];
    const answer = {
      type: "mcp_approval_response",
      approval_request_id: asked.body.output[1].id,
      approve: true,
    };
    const { body } = await world.create({
      input: [answer],
      previous_response_id: asked.body.id,
      tools: mcp,
    });
    expect(body.output).toMatchObject([
      { type: "mcp_list_tools" },
      { type: "mcp_call", output: "a.txt", approval_request_id: answer.approval_request_id },
      { type: "message" },
    ]);
    expect(world.chat.requests[1]!.messages).toMatchObject([
      { role: "user" },
      { role: "assistant", toolCalls: [{ name: "list_files" }] },
      { role: "tool", content: "a.txt" },
    ]);
  });

  test("a call that the model makes behind it is another turn's", async () => {
    const asked = await world.create({ input: "Which files?", tools: mcp });
    const next = { id: "call_2", name: "mine", arguments: "{}" };
    world.chat.script = [...callEvents(next), finish("tool_calls", [next])];
    const consent = {
      type: "mcp_approval_response",
      approval_request_id: asked.body.output[1].id,
      approve: true,
    };
    const both = [...mcp, { type: "function", name: "mine" }];
    const { body } = await world.create({
      input: [consent],
      previous_response_id: asked.body.id,
      tools: both,
    });
    world.chat.script = [finish("stop")];
    const output = { type: "function_call_output", call_id: "call_2", output: "x" };
    await world.create({ input: [output], previous_response_id: body.id, tools: both });
    expect(world.chat.requests[2]!.messages).toMatchObject([
      { role: "user" },
      { role: "assistant", toolCalls: [{ name: "list_files" }] },
      { role: "tool", content: "a.txt" },
      { role: "assistant", toolCalls: [{ name: "mine" }] },
      { role: "tool", content: "x" },
    ]);
  });

  test("a call that reports without end is stopped after the time that a call has", async () => {
    await world.close();
    const endless: Tool = {
      definition: { name: "list_files", parameters: { type: "object" } },
      server: "files",
      call: (_args, { report, signal }) =>
        new Promise((_, reject) => {
          const timer = setInterval(() => void report({ type: "progress" }), 10);
          signal.addEventListener("abort", () => {
            clearInterval(timer);
            reject(new Error("stopped"));
          });
        }),
    };
    const config = { toolTimeoutMs: 200, toolTotalTimeoutMs: 400 };
    world = await createResponsesWorld({ tools: provider(endless), config });
    world.chat.script = [...callEvents(call), hold, finish("stop")];
    const asked = await world.create({ input: "Which files?", tools: mcp });
    world.chat.script = [finish("stop")];
    const approval_request_id = asked.body.output[1].id;
    const { body } = await world.create({
      input: [{ type: "mcp_approval_response", approval_request_id, approve: true }],
      previous_response_id: asked.body.id,
      tools: mcp,
    });
    expect(body.output[1].error).toContain("took more than 0.4 seconds");
  });

  test("refused: the model reads that", async () => {
    const asked = await world.create({ input: "Which files?", tools: mcp });
    world.chat.script = [{ type: "content", text: "Well." }, finish("stop")];
    const approval_request_id = asked.body.output[1].id;
    const answer = { type: "mcp_approval_response", approval_request_id, approve: false };
    const previous_response_id = asked.body.id;
    await world.create({ input: [answer], previous_response_id, tools: mcp });
    expect(world.chat.requests[1]!.messages).toMatchObject([
      { role: "user" },
      { role: "assistant", toolCalls: [{ name: "list_files" }] },
      { role: "tool", content: expect.stringContaining("did not allow") },
    ]);
  });
});

describe("conversations", () => {
  test("with the SDK: made, used by two responses, read, changed, deleted", async () => {
    const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "EMPTY", maxRetries: 0 });
    const made = await openai.conversations.create({
      metadata: { topic: "demo" },
      items: [{ type: "message", role: "developer", content: "Be brief." }],
    });
    for (const input of ["One?", "Two?"])
      await openai.responses.create({ model: "default", input, conversation: made.id });
    expect(world.chat.requests[1]!.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "One?" },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "Two?" },
    ]);
    const items = await openai.conversations.items.list(made.id, { order: "asc" });
    expect(items.data).toHaveLength(5);
    const one = items.data[1]!.id!;
    await openai.conversations.items.delete(one, { conversation_id: made.id });
    await expect(
      openai.conversations.items.retrieve(one, { conversation_id: made.id }),
    ).rejects.toMatchObject({ status: 404 });
    await openai.conversations.items.create(made.id, {
      items: [{ type: "message", role: "user", content: "Three?" }],
    });
    expect((await openai.conversations.items.list(made.id)).data).toHaveLength(5);
    const changed = await openai.conversations.update(made.id, { metadata: { topic: "new" } });
    expect(changed.metadata).toEqual({ topic: "new" });
    const cleared = await openai.conversations.update(made.id, { metadata: null });
    expect(cleared.metadata).toEqual({});
    await openai.conversations.delete(made.id);
    await expect(openai.conversations.retrieve(made.id)).rejects.toMatchObject({ status: 404 });
  });
});

describe("compaction", () => {
  const url = "/v1/responses/compact";
  const greeted = [{ type: "content" as const, text: "They greeted." }, finish("stop")];

  test("the users' words and a summary that the next turn reads", async () => {
    world.chat.script = greeted;
    const input = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello." },
    ];
    const salted = { model: "tiny", input, cache_salt: "mine" };
    const compacted = await world.call("POST", url, salted);
    expect(world.chat.requests[0]!.cacheSalt).toBe("mine");
    expect(compacted.body).toMatchObject({
      object: "response.compaction",
      output: [{ type: "message", role: "user" }, { type: "compaction" }],
      usage: { output_tokens: 7 },
    });
    const missing = await world.call("POST", url, { input });
    expect(missing).toMatchObject({ status: 400, body: { error: { param: "model" } } });
    await world.create({ input: [...compacted.body.output, { role: "user", content: "And?" }] });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      { role: "user", content: "Hi" },
      { role: "user", content: "Summary of the conversation so far:\n\nThey greeted." },
      { role: "user", content: "And?" },
    ]);
  });

  test("the template gets its variables", async () => {
    world.chat.script = greeted;
    const reasoning = { effort: "none" };
    const body = { model: "tiny", input: "Hi", reasoning, chat_template_kwargs: { style: "dry" } };
    expect((await world.call("POST", url, body)).status).toBe(200);
    expect(world.chat.requests[0]!.templateVariables).toEqual({
      reasoning_effort: "none",
      style: "dry",
    });
  });

  test.each([
    ["length", {}, "max_output_tokens"],
    ["length", { n_predict: 0 }, "n_predict"],
    ["length", { n_predict: 0, max_output_tokens: 3 }, "max_output_tokens"],
    ["stop", {}, "input"],
  ] as const)("no summary before %s, %j: an error, not an empty item", async (...given) => {
    const [reason, limit, param] = given;
    world.chat.script = [
      { type: "reasoning", text: "Well, let me see" },
      { type: "content", text: "\n\n" },
      finish(reason),
    ];
    const reply = await world.call("POST", url, { model: "tiny", input: "Hi", ...limit });
    expect(reply).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_value", param } },
    });
    expect(reply.body).not.toHaveProperty("output");
  });

  test("truncation: auto has it summarize what fits, and refuses what cannot be made to", async () => {
    const { FermataError } = await import("../../src/errors.ts");
    const contextSize = 4;
    world.chat.script = greeted;
    world.chat.countPromptTokens = async ({ messages }) => {
      if (messages.length > contextSize)
        throw new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
      return messages.length;
    };
    const input = ["one", "two", "three"].flatMap((content) => [
      { role: "user", content },
      { role: "assistant", content: `${content}!` },
    ]);
    const body = { model: "tiny", input, instructions: "Count.", truncation: "auto" };
    const { body: compacted } = await world.call("POST", url, body);
    const contents = world.chat.requests[0]!.messages.map(({ content }) => content);
    expect(contents).toEqual([
      "Count.",
      "three",
      "three!",
      expect.stringMatching(/^Summarize the conversation/),
    ]);
    // No word of the users is lost.
    expect(compacted.output.slice(0, -1)).toMatchObject(
      ["one", "two", "three"].map((text) => ({ role: "user", content: [{ text }] })),
    );
    const tooLong = new FermataError("context_length_exceeded", "Long.", { param: "messages" });
    world.chat.script = [{ fail: tooLong }];
    expect(await world.call("POST", url, body)).toMatchObject({
      status: 400,
      body: { error: { code: "context_length_exceeded", param: "input" } },
    });
    expect(world.chat.requests).toHaveLength(2);
  });
});

describe("compaction_trigger", () => {
  const trigger = { type: "compaction_trigger" };
  const hi = { role: "user", content: "Hi" };
  const hello = { role: "assistant", content: "Hello." };
  const summary = "Summary of the conversation so far:\n\nThey greeted.";

  beforeEach(() => {
    world.chat.script = [
      { type: "reasoning", text: "Well" },
      { type: "content", text: "They " },
      { type: "content", text: "greeted." },
      finish("length"),
    ];
  });

  test("streamed: one item, whole, and nothing else; the tools and the form are not in play", async () => {
    const format = { type: "json_schema", name: "a", schema: { type: "object" } };
    const choice = { tools, tool_choice: "required", text: { format } };
    const events = await world.streamed({ input: [hi, hello, trigger], ...choice });
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.output_item.done",
      "response.completed",
    ]);
    const item = { type: "compaction", encrypted_content: expect.any(String) };
    expect(events[3]).toMatchObject({ output_index: 0, item });
    expect(events[4]).toMatchObject({
      response: { status: "completed", output: [item], usage: { output_tokens: 7 } },
    });
    const [asked] = world.chat.requests;
    expect(asked).toMatchObject({ toolMode: "none", tools: [] });
    expect(asked!.guidance?.document).toBeUndefined();
    expect(asked!.messages.slice(0, 2)).toEqual([hi, hello]);
    expect(asked!.messages[2]!.content).toMatch(/^Summarize the conversation/);
  });

  test("what follows it in the chain reads the users' words and the latest summary", async () => {
    const first = await world.create({ input: [hi, hello, trigger] });
    expect(first.body.output).toMatchObject([{ type: "compaction" }]);
    const items = await world.call("GET", `/v1/responses/${first.body.id}/input_items`);
    expect(items.body.data.map(({ type }: { type: string }) => type)).toEqual([
      "message",
      "message",
    ]);
    const ask = (previous: string, input: object[]) =>
      world.create({ previous_response_id: previous, input });
    const and = { role: "user", content: "And?" };
    const second = await ask(first.body.id, [and]);
    const read = () => world.chat.requests.at(-1)!.messages;
    expect(read()).toEqual([hi, { role: "user", content: summary }, and]);
    const third = await ask(second.body.id, [trigger]);
    await ask(third.body.id, [{ role: "user", content: "Go on" }]);
    expect(read().map(({ content }) => content)).toEqual(["Hi", "And?", summary, "Go on"]);
  });

  test("an output that comes behind the summary has its call before it, as the model made it", async () => {
    const call = { id: "c1", name: "read_file_chunk", arguments: "{}" };
    const { script } = world.chat;
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const first = await world.create({ input: [hi], tools });
    world.chat.script = script;
    const second = await world.create({ previous_response_id: first.body.id, input: [trigger] });
    const output = { type: "function_call_output", call_id: "c1", output: "text" };
    await world.create({ previous_response_id: second.body.id, tools, input: [output] });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      hi,
      { role: "user", content: summary },
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", toolCallId: "c1", content: "text" },
    ]);
  });

  test("a conversation keeps the item and what was said, and goes on from the summary", async () => {
    const { body: conversation } = await world.call("POST", "/v1/conversations", {});
    const ask = (input: object[]) => world.create({ conversation: conversation.id, input });
    await ask([hi]);
    const { body } = await ask([trigger]);
    const and = { role: "user", content: "And?" };
    await ask([and]);
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      hi,
      { role: "user", content: summary },
      and,
    ]);
    const items = `/v1/conversations/${conversation.id}/items`;
    const kept = await world.call("GET", `${items}?order=asc`);
    expect(kept.body.data.map(({ type }: { type: string }) => type)).toEqual([
      "message",
      "reasoning",
      "message",
      "compaction",
      "message",
      "reasoning",
      "message",
    ]);
    const [item] = body.output;
    expect((await world.call("GET", `${items}/${item.id}`)).body).toEqual(item);
  });

  test("unstored, the client carries the item; a developer's words stay first", async () => {
    const told = [{ role: "developer", content: "Be brief." }, hi];
    const { body } = await world.create({ store: false, input: [...told, hello, trigger] });
    await world.create({ store: false, input: [...told, hello, ...body.output] });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      { role: "system", content: "Be brief." },
      hi,
      { role: "user", content: summary },
    ]);
  });

  test("input_tokens counts the words that ask for the summary, too", async () => {
    world.chat.countPromptTokens = async ({ messages }) => messages.length;
    const input = [hi, hello, trigger];
    const { body } = await world.call("POST", "/v1/responses/input_tokens", { input });
    await world.create({ input });
    expect(body.input_tokens).toBe(world.chat.requests[0]!.messages.length);
  });

  test("an item that cannot be read takes the place of nothing", async () => {
    const foreign = { type: "compaction", encrypted_content: "AAAA" };
    await world.create({ input: [hi, hello, foreign, { role: "user", content: "And?" }] });
    expect(world.chat.requests[0]!.messages.map(({ content }) => content)).toEqual([
      "Hi",
      "Hello.",
      expect.stringContaining("cannot be read"),
      "And?",
    ]);
  });

  test("in the background", async () => {
    const begun = await world.create({ input: [hi, trigger], background: true });
    await eventually(async () => {
      const { body } = await world.call("GET", `/v1/responses/${begun.body.id}`);
      expect(body).toMatchObject({ status: "completed", output: [{ type: "compaction" }] });
    });
  });

  test("no summary: an error, not an empty item", async () => {
    world.chat.script = [{ type: "content", text: "\n" }, finish("stop")];
    const reply = await world.create({ input: [hi, trigger] });
    expect(reply).toMatchObject({ status: 400, body: { error: { param: "input" } } });
  });

  test.each([
    [{ input: [hi, trigger, hello] }, "input[1]"],
    [{ input: [trigger] }, "input"],
    [{ input: [trigger], instructions: "Be brief." }, "input"],
  ])("%j: a 400", async (body, param) => {
    expect(await world.create(body)).toMatchObject({ status: 400, body: { error: { param } } });
  });

  test("a conversation takes no such item", async () => {
    const reply = await world.call("POST", "/v1/conversations", { items: [hi, trigger] });
    expect(reply).toMatchObject({ status: 400, body: { error: { param: "items[1].type" } } });
  });
});

test.each(["msg_\u0000", "msg_\uD800"])("an id that no database keeps: %j", async (id) => {
  const said = (content: string) => ({ id, type: "message", role: "user", content });
  expect(await world.create({ input: [said("Hi"), said("And?")] })).toMatchObject({ status: 200 });
  const { status, body } = await world.create({ input: [said("Hi")] });
  expect(status).toBe(200);
  const { body: items } = await world.call("GET", `/v1/responses/${body.id}/input_items`);
  expect(items.data).toMatchObject([{ id: "msg_\uFFFD", content: [{ text: "Hi" }] }]);
});

test("input_tokens counts what create would read", async () => {
  world.chat.countPromptTokens = async ({ messages, tools: offered }) =>
    messages.length * 10 + offered.length;
  const reply = await world.call("POST", "/v1/responses/input_tokens", {
    input: "Hi",
    instructions: "Be brief.",
    tools,
  });
  expect(reply.body).toEqual({ object: "response.input_tokens", input_tokens: 21 });
});
