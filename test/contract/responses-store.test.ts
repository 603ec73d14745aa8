/** What is kept of responses, and what goes on without its client. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FermataError } from "../../src/errors.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, callEvents, fakeTool, finish, provider } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import {
  createResponsesWorld,
  eventsOf,
  type Json,
  type ResponsesWorld,
} from "./responses-world.ts";

const call = { id: "call_1", name: "list_files", arguments: "{}" };
const tools = [{ type: "function", name: "list_files" }];
let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});

afterEach(async () => {
  vi.useRealTimers();
  await world.close();
});

describe("a chain", () => {
  test("the next turn sees the whole history, the caller's ids and all", async () => {
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const first = await world.create({ input: "Which files?", tools });
    world.chat.script = [{ type: "content", text: "a.txt" }, finish("stop")];
    const output = {
      type: "function_call_output",
      call_id: "call_1",
      output: { files: ["a.txt"] },
    };
    const second = await world.create({
      input: [output],
      previous_response_id: first.body.id,
      tools,
    });
    expect(second.body.previous_response_id).toBe(first.body.id);
    expect(world.chat.requests[1]!.messages).toEqual([
      { role: "user", content: "Which files?" },
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", toolCallId: "call_1", content: '{"files":["a.txt"]}' },
    ]);
    const stored = await world.call("GET", `/v1/responses/${second.body.id}`);
    expect(stored.body).toEqual(second.body);
    const items = await world.call("GET", `/v1/responses/${second.body.id}/input_items?order=asc`);
    expect(items.body.data.map(({ type }: { type: string }) => type)).toEqual([
      "message",
      "function_call",
      "function_call_output",
    ]);
    const page = await world.call("GET", `/v1/responses/${second.body.id}/input_items?limit=1`);
    expect(page.body).toMatchObject({ data: [{ type: "function_call_output" }], has_more: true });
  });

  test("ids with a replica's name are found as others are", async () => {
    world = await createResponsesWorld({ config: { replica: "r1" } });
    const conversation = await world.call("POST", "/v1/conversations", {});
    expect(conversation.body.id).toMatch(/^conv_r1\.[0-9a-f]{48}$/);
    const first = await world.create({ input: "One", conversation: conversation.body.id });
    expect(first.body.id).toMatch(/^resp_r1\.[0-9a-f]{48}$/);
    const next = await world.create({ input: "Two", previous_response_id: first.body.id });
    expect(next.body.previous_response_id).toBe(first.body.id);
    expect((await world.call("GET", `/v1/responses/${next.body.id}`)).body).toEqual(next.body);
  });

  test("unknown, deleted and unstored responses are not found", async () => {
    const { body } = await world.create({ input: "Hi" });
    expect(await world.call("DELETE", `/v1/responses/${body.id}`)).toMatchObject({
      status: 200,
      body: { id: body.id, deleted: true },
    });
    const unstored = await world.create({ input: "Hi", store: false });
    for (const id of [body.id, unstored.body.id, "resp_x"]) {
      expect((await world.call("GET", `/v1/responses/${id}`)).status).toBe(404);
      const next = await world.create({ input: "Hi", previous_response_id: id });
      expect(next).toMatchObject({
        status: 400,
        body: { error: { code: "previous_response_not_found", param: "previous_response_id" } },
      });
    }
  });

  test("a reference stands for the stored item", async () => {
    const { body } = await world.create({ input: "Hi" });
    const reference = { type: "item_reference", id: body.output[0].id };
    await world.create({
      input: [{ role: "user", content: "Hi" }, reference, { role: "user", content: "?" }],
    });
    expect(world.chat.requests[1]!.messages[1]).toEqual({ role: "assistant", content: "Hello." });
    expect(
      (await world.create({ input: [{ type: "item_reference", id: "msg_x" }] })).body.error,
    ).toMatchObject({
      param: "input[0].id",
    });
  });
});

describe("background", () => {
  test("it is queued at once, read later, and streamed again from any event", async () => {
    const { body } = await world.create({ input: "Hi", background: true });
    expect(body).toMatchObject({ status: "queued", background: true, output: [] });
    await until(async () => (await retrieve(body.id)).status === "completed");
    expect((await retrieve(body.id)).output[0].content[0].text).toBe("Hello.");
    const whole = await replay(body.id, "");
    expect(whole.slice(0, 2)).toMatchObject([
      { type: "response.created", sequence_number: 0, response: { status: "queued" } },
      { type: "response.in_progress", response: { status: "in_progress" } },
    ]);
    const rest = await replay(body.id, "&starting_after=3");
    expect(rest).toEqual(whole.slice(4));
  });

  test("it is in progress while it is written", async () => {
    world.chat.script = [{ hang: true }, finish("stop")];
    const { body } = await world.create({ input: "Hi", background: true });
    expect(body.status).toBe("queued");
    await until(async () => (await retrieve(body.id)).status === "in_progress");
  });

  test("one that cannot be kept is refused, and its generation ends", async () => {
    world.chat.script = [{ hang: true }, finish("stop")];
    const full = new FermataError("internal_error", "The disk is full.");
    vi.spyOn(world.store.responses, "create").mockRejectedValue(full);
    const { status, body } = await world.create({ input: "Hi", background: true });
    expect([status, body.error.code]).toEqual([500, "internal_error"]);
    expect(world.chat.requests[0]?.signal?.aborted).toBe(true);
  });

  test("one whose first events cannot be kept has failed, for all who ask", async () => {
    world.chat.script = [{ hang: true }, finish("stop")];
    const full = new FermataError("internal_error", "The disk is full.");
    vi.spyOn(world.store.responses, "appendEvents").mockRejectedValueOnce(full);
    const { body } = await world.create({ input: "Hi", background: true });
    await until(async () => (await retrieve(body.id)).status === "failed");
    expect((await replay(body.id, "")).at(-1)).toMatchObject({ type: "response.failed" });
    expect(world.chat.requests[0]?.signal?.aborted).toBe(true);
    // The next one is not concerned.
    world.chat.script = [{ type: "content", text: "Hello." }, finish("stop")];
    const next = await world.create({ input: "Hi", background: true });
    await until(async () => (await retrieve(next.body.id)).status === "completed");
  });

  test("one that could not be told of does not stand as in progress", async () => {
    world.chat.script = [{ hang: true }, finish("stop")];
    const full = new FermataError("internal_error", "The disk is full.");
    vi.spyOn(world.store.responses, "setHold").mockRejectedValueOnce(full);
    expect((await world.create({ input: "Hi", background: true })).status).toBe(500);
    const stored = await world.store.responses.all("anonymous");
    expect(stored.map(({ body }) => body["status"])).toEqual(["failed"]);
  });

  test("cancel keeps what was said", async () => {
    world.chat.script = [{ type: "content", text: "Hel" }, { hang: true }];
    const { body } = await world.create({ input: "Hi", background: true });
    await until(async () => (await retrieve(body.id)).output.length === 1);
    const cancelled = await world.call("POST", `/v1/responses/${body.id}/cancel`);
    expect(cancelled.body).toMatchObject({
      status: "cancelled",
      output: [{ status: "incomplete", content: [{ text: "Hel" }] }],
    });
    expect(await retrieve(body.id)).toEqual(cancelled.body);
    expect((await replay(body.id, "")).at(-1)).toMatchObject({ type: "response.incomplete" });
    // As Python writes it.
    const again = await world.app.inject({ url: `/v1/responses/${body.id}?stream=True` });
    expect(eventsOf(again.body)).toEqual(await replay(body.id, ""));
  });

  test("only background responses are cancelled and streamed again", async () => {
    const { body } = await world.create({ input: "Hi" });
    const refused = await world.call("POST", `/v1/responses/${body.id}/cancel`);
    expect([refused.status, refused.body.error.param]).toEqual([400, "id"]);
    expect(refused.body.error.message).toMatch(/^Cannot cancel a synchronous response\. /);
    expect((await world.call("GET", `/v1/responses/${body.id}?stream=true`)).status).toBe(400);
  });

  test("a server that closes gives it time to end", async () => {
    await world.close();
    let answerCall = (): void => {};
    const answered = new Promise<void>((resolve) => (answerCall = resolve));
    const tool = fakeTool("list_files", { content: "a.txt", isError: false });
    const called = vi.fn(() => answered.then(() => ({ content: "a.txt", isError: false })));
    const tools = provider({ ...tool, call: called });
    world = await createResponsesWorld({ tools, config: { drainMs: 60_000 } });
    world.chat.script = [
      ...callEvents(call),
      { type: "hold", calls: [call], usage },
      { type: "content", text: "There is a.txt." },
      finish("stop"),
    ];
    const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
    const { body } = await world.create({ input: "Which files?", background: true });
    await eventually(() => expect(called).toHaveBeenCalled());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const closed = world.app.close();
    await eventually(async () => expect((await fetch(`${url}/v1/models`)).status).toBe(503));
    vi.advanceTimersByTime(50_000);
    // Fastify's own limits do not cut it short.
    expect((await fetch(`${url}/v1/models`)).status).toBe(503);
    answerCall();
    await closed;
    expect(await stored(body.id)).toMatchObject({
      body: { status: "completed", error: null },
      output: [{ type: "mcp_call" }, { content: [{ text: "There is a.txt." }] }],
    });
  });

  test("one that does not end in the time that a server has to close is failed, and keeps what was said", async () => {
    world.chat.script = [{ type: "content", text: "Hel" }, { hang: true }];
    const { body } = await world.create({ input: "Hi", background: true });
    await until(async () => (await retrieve(body.id)).output.length === 1);
    await world.app.close();
    expect(await stored(body.id)).toMatchObject({
      body: { status: "failed", error: { message: expect.stringContaining("shutting down") } },
      output: [{ status: "incomplete", content: [{ text: "Hel" }] }],
    });
  });

  test("it needs a store", async () => {
    const { app } = createWorld();
    const payload = { input: "Hi", background: true };
    const reply = await app.inject({ method: "POST", url: "/v1/responses", payload });
    expect(reply.json().error).toMatchObject({ param: "background" });
    expect((await world.create({ ...payload, store: false })).body.error.param).toBe("store");
  });
});

test("truncation: auto leaves the oldest turns out", async () => {
  const { FermataError } = await import("../../src/errors.ts");
  world.chat.countPromptTokens = async ({ messages }) => {
    if (messages.length > 3) throw new FermataError("context_length_exceeded", "Too long.");
    return 1;
  };
  const input = ["one", "two", "three"].flatMap((text) => [
    { role: "user", content: text },
    { role: "assistant", content: text },
  ]);
  const last = { role: "user", content: "four" };
  const body = { instructions: "Count.", input: [...input, last] };
  await world.create({ ...body, truncation: "auto" });
  expect(world.chat.requests[0]!.messages.map(({ content }) => content)).toEqual([
    "Count.",
    "four",
  ]);
  await world.create(body);
  expect(world.chat.requests[1]!.messages).toHaveLength(8);
});

describe("truncation: auto", () => {
  const contextSize = 5;
  const round = (index: number) => [
    { type: "function_call", call_id: `c${index}`, name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: `c${index}`, output: `result ${index}` },
  ];
  let counts: number;

  beforeEach(async () => {
    const { FermataError } = await import("../../src/errors.ts");
    counts = 0;
    world.chat.countPromptTokens = async ({ messages }) => {
      counts += 1;
      if (messages.length > contextSize)
        throw new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
      return messages.length;
    };
  });

  const read = (): string[] =>
    world.chat.requests
      .at(-1)!
      .messages.map(({ role, content }) => (content === "" ? role : content));

  test("of one long turn, the oldest rounds go and the question stays", async () => {
    const question = { role: "user", content: "Do it." };
    const input = [question, ...[1, 2, 3, 4].flatMap(round)];
    await world.create({ instructions: "Work.", input, truncation: "auto" });
    expect(read()).toEqual(["Work.", "Do it.", "assistant", "result 4"]);
  });

  test("a long history is not counted turn by turn", async () => {
    const turns = Array.from({ length: 500 }, (_, index) => [
      { role: "user", content: `question ${index}` },
      { role: "assistant", content: `answer ${index}` },
    ]).flat();
    await world.create({
      input: [...turns, { role: "user", content: "last" }],
      truncation: "auto",
    });
    expect(read()).toEqual(["question 498", "answer 498", "question 499", "answer 499", "last"]);
    expect(counts).toBeLessThan(15);
  });

  test("of the histories that it tries, only the one that is counted is in memory", async () => {
    const { FermataError } = await import("../../src/errors.ts");
    const heap: number[] = [];
    world.chat.countPromptTokens = async ({ messages }) => {
      heap.push(process.memoryUsage().heapUsed);
      if (messages.length > contextSize)
        throw new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
      return messages.length;
    };
    const input = Array.from({ length: 10_000 }, () => ({ role: "user", content: "Hi" }));
    await world.create({ input, truncation: "auto" });
    expect(read()).toHaveLength(contextSize);
    // All at once are 50 million references.
    expect(heap[1]! - heap[0]!).toBeLessThan(50e6);
  });

  test("leaves room for the answer, and cuts the next turns at the same place", async () => {
    const tokensOfMessage = 20;
    world.chat.countPromptTokens = async ({ messages }) => messages.length * tokensOfMessage;
    const firstOf = async (turns: number, fields: object): Promise<string> => {
      const history = Array.from({ length: turns }, (_, index) => [
        { role: "user", content: `question ${index}` },
        { role: "assistant", content: `answer ${index}` },
      ]).flat();
      const input = [...history, { role: "user", content: "last" }];
      await world.create({ input, truncation: "auto", ...fields });
      return read()[0]!;
    };
    // Of 1,000 tokens a quarter is the answer's, and a quarter goes at a time.
    expect(await firstOf(18, {})).toBe("question 0");
    expect(await firstOf(19, {})).toBe("question 7");
    expect(await firstOf(20, {})).toBe("question 7");
    expect(await firstOf(24, {})).toBe("question 7");
    expect(await firstOf(25, {})).toBe("question 13");
    // A shorter answer needs less.
    expect(await firstOf(24, { max_output_tokens: 20 })).toBe("question 0");
    expect(await firstOf(25, { max_output_tokens: 20 })).toBe("question 7");
  });

  test("what cannot be made to fit is refused", async () => {
    const message = { role: "user", content: "Hi" };
    const { FermataError } = await import("../../src/errors.ts");
    const tooLong = new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
    world.chat.countPromptTokens = async () => 2000;
    world.chat.script = [{ fail: tooLong }];
    const { status, body } = await world.create({ input: [message, message], truncation: "auto" });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "context_length_exceeded", param: "input" });
    expect(read()).toEqual(["Hi"]);
  });
});

async function retrieve(id: string): Promise<Json> {
  return (await world.call("GET", `/v1/responses/${id}`)).body;
}

/** Without the server. */
async function stored(id: string): Promise<{ body: unknown; output: unknown }> {
  const response = await world.store.responses.find("anonymous", id);
  const items = await world.store.responses.items("anonymous", id);
  return { body: response?.body, output: items?.output };
}

async function replay(id: string, query: string) {
  const url = `/v1/responses/${id}?stream=true${query}`;
  return eventsOf((await world.app.inject({ url })).body);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("in the background: what does not fit is refused before it is stored", async () => {
  const tooLong = new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
  const prepare = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    throw tooLong;
  };
  world.chat.script = [{ prepare }];
  const create = vi.spyOn(world.store.responses, "create");
  const { status, body } = await world.create({ input: "Much.", background: true });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ code: "context_length_exceeded", param: "input" });
  expect(create).not.toHaveBeenCalled();
});
