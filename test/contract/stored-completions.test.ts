/** Chat completions that are kept, what a request counts, and what is told of usage. */

import OpenAI from "openai";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";
import { createWorld, FakeChat, finish, post, sseEvents } from "./fake-services.ts";

const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Hi" }] },
];
const listed = "/v1/chat/completions";
let world: ResponsesWorld;

beforeEach(async () => (world = await createResponsesWorld()));
afterEach(() => world.close());

async function keep(body: object = {}): Promise<Json> {
  const payload = { messages, store: true, ...body };
  const response = await world.app.inject({ method: "POST", url: listed, payload });
  expect(response.statusCode).toBe(200);
  return response.json();
}

test("one is read, relabelled and deleted", async () => {
  const made = await keep({ metadata: { topic: "sea" } });
  const url = `${listed}/${made.id}`;
  const stored = { ...made, metadata: { topic: "sea" } };
  expect((await world.call("GET", url)).body).toEqual(stored);
  const changed = await world.call("POST", url, { metadata: { topic: "land" } });
  expect(changed.body).toEqual({ ...made, metadata: { topic: "land" } });
  expect((await world.call("GET", url)).body.metadata).toEqual({ topic: "land" });
  expect((await world.call("DELETE", url)).body).toEqual({
    object: "chat.completion.deleted",
    id: made.id,
    deleted: true,
  });
  for (const gone of [url, `${url}/messages`]) {
    const { status, body } = await world.call("GET", gone);
    expect([status, body.error.code]).toEqual([404, "not_found"]);
  }
  expect((await world.call("POST", url, { metadata: {} })).status).toBe(404);
  expect((await world.call("DELETE", url)).status).toBe(404);
});

test("a streamed one is kept as it would have come unstreamed", async () => {
  world.chat.script = [
    { type: "content", text: "Hel" },
    { type: "content", text: "lo" },
    finish("length"),
  ];
  const payload = { messages, store: true, stream: true, n: 2 };
  const { body } = await world.app.inject({ method: "POST", url: listed, payload });
  const [{ id }] = sseEvents(body) as [{ id: string }];
  expect((await world.call("GET", `${listed}/${id}`)).body).toMatchObject({
    id,
    object: "chat.completion",
    choices: [0, 1].map((index) => ({
      index,
      message: { role: "assistant", content: "Hello" },
      finish_reason: "length",
    })),
    metadata: {},
  });
});

test("they are listed in pages, the oldest first, and filtered", async () => {
  const ids: string[] = [];
  for (const topic of ["sea", "land", "sea"]) ids.push((await keep({ metadata: { topic } })).id);
  await keep({ store: false });
  const page = async (query: string): Promise<string[]> =>
    (await world.call("GET", `${listed}${query}`)).body.data.map(({ id }: Json) => id);
  expect(await page("")).toEqual(ids);
  expect(await page("?order=desc&limit=1")).toEqual(ids.slice(2));
  expect(await page(`?after=${ids[0]}&limit=1`)).toEqual([ids[1]]);
  expect(await page("?metadata[topic]=sea")).toEqual([ids[0], ids[2]]);
  expect(await page("?model=other")).toEqual([]);
  expect((await world.call("GET", `${listed}?order=up`)).status).toBe(400);
});

test("their messages are those that were sent", async () => {
  const { id } = await keep();
  const { body } = await world.call("GET", `${listed}/${id}/messages`);
  expect(body).toMatchObject({
    object: "list",
    data: [
      { id: `${id}-0`, role: "system", content: "Be brief.", content_parts: null },
      { id: `${id}-1`, role: "user", content: null, content_parts: messages[1]!.content },
    ],
    has_more: false,
  });
});

test("no other owner, and no other API, finds them", async () => {
  const keys = await createResponsesWorld({ config: { apiKeys: ["a", "b"] } });
  const as = (key: string) => ({ authorization: `Bearer ${key}` });
  const payload = { messages, store: true };
  const made = await keys.app.inject({ method: "POST", url: listed, payload, headers: as("a") });
  const { id } = made.json() as { id: string };
  const status = async (url: string, key: string) =>
    (await keys.app.inject({ url, headers: as(key) })).statusCode;
  expect(await status(`${listed}/${id}`, "a")).toBe(200);
  expect(await status(`${listed}/${id}`, "b")).toBe(404);
  expect(await status(`/v1/responses/${id}`, "a")).toBe(404);
  const { body } = await keys.call("GET", `${listed}`);
  expect(body.error.code).toBe("unauthorized");
  await keys.close();
});

test("openai's client lists, reads, changes and deletes them", async () => {
  await world.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = world.app.server.address() as AddressInfo;
  const client = new OpenAI({ apiKey: "x", baseURL: `http://127.0.0.1:${port}`, maxRetries: 0 });
  const { completions } = client.chat;
  const { id } = await keep({ metadata: { topic: "sea" } });
  const all = [];
  for await (const each of completions.list({ metadata: { topic: "sea" }, limit: 1 }))
    all.push(each.id);
  expect(all).toEqual([id]);
  expect((await completions.retrieve(id)).choices[0]?.message.content).toBe("Hello.");
  expect(await completions.update(id, { metadata: { a: "b" } })).toMatchObject({ id });
  const said = [];
  for await (const message of completions.messages.list(id)) said.push(message.role);
  expect(said).toEqual(["system", "user"]);
  expect(await completions.delete(id)).toMatchObject({ deleted: true });
});

test("without a store they are answered, and nothing is found", async () => {
  const { app } = createWorld();
  expect((await post(app, { messages, store: true })).statusCode).toBe(200);
  const response = await app.inject({ url: listed });
  expect(response.statusCode).toBe(400);
  expect(response.json().error.message).toContain("--store");
});

describe("POST /v1/chat/completions/input_tokens", () => {
  test("counts the request's prompt", async () => {
    const { app, chat } = createWorld();
    const tools = [{ type: "function", function: { name: "f" } }];
    const payload = { messages, tools, chat_template_kwargs: { a: 1 } };
    const url = "/v1/chat/completions/input_tokens";
    const response = await app.inject({ method: "POST", url, payload });
    expect(response.json()).toEqual({ object: "response.input_tokens", input_tokens: 20 });
    expect(chat.counted).toMatchObject([
      { messages: [{ role: "system" }, { role: "user" }], tools: [{ name: "f" }] },
    ]);
    expect(chat.counted[0]?.templateVariables).toMatchObject({ a: 1 });
    const wrong = await app.inject({ method: "POST", url, payload: {} });
    expect(wrong.json().error.param).toBe("messages");
  });
});

test("message_start of a streamed message has the count of its prompt", async () => {
  const chat = new FakeChat();
  chat.promptTokens = 77;
  const { app } = createWorld({ chat });
  const payload = { messages: [{ role: "user", content: "Hi" }], max_tokens: 5, stream: true };
  const { body } = await app.inject({ method: "POST", url: "/v1/messages", payload });
  const start = JSON.parse(/^data: (.*message_start.*)$/m.exec(body)![1]!) as Json;
  expect(start.message.usage).toMatchObject({ input_tokens: 77, output_tokens: 0 });
});

test("the fingerprint is one for a model, on all of OpenAI's completions", async () => {
  const { app } = createWorld();
  const chat = (await post(app, { messages })).json();
  const payload = { prompt: "A" };
  const text = await app.inject({ method: "POST", url: "/v1/completions", payload });
  expect(chat.system_fingerprint).toMatch(/^b[0-9a-f]{10}$/);
  expect(text.json().system_fingerprint).toBe(chat.system_fingerprint);
  const streamed = sseEvents((await post(app, { messages, stream: true })).body).slice(0, -1);
  for (const chunk of streamed)
    expect(chunk).toMatchObject({ system_fingerprint: chat.system_fingerprint });
});
