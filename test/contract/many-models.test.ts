/** What needs no model, where a folder of them is served: it is answered while none is loaded for it, and none leaves. */

import { afterEach, expect, test } from "vitest";
import type { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { eventually } from "../support/eventually.ts";
import { type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import { fakeTool, provider } from "./fake-services.ts";
import { held, tools } from "./held-calls.ts";
import { createModelsWorld } from "./models-world.ts";
import type { Json } from "./responses-world.ts";

const messages = [{ role: "user", content: "Hi" }];
let stored: StoreWorld | null = null;
afterEach(async () => {
  await stored?.remove();
  stored = null;
});

type World = ReturnType<typeof createModelsWorld>;

async function post(
  { app }: World,
  url: string,
  payload: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Record<string, unknown>; body: string; json(): Json }> {
  const reply = await app.inject({ method: "POST", url, payload, headers });
  return {
    status: reply.statusCode,
    headers: reply.headers,
    body: reply.body,
    json: () => reply.json(),
  };
}

test.each([
  ["/api/generate", {}],
  ["/api/generate", { prompt: "" }],
  ["/api/chat", { messages: [] }],
])(
  "%s with keep_alive 0 and no text loads nothing, and what is in memory leaves",
  async (url, body) => {
    const world = createModelsWorld({
      loading: () => new Promise((resolve) => setTimeout(resolve)),
    });
    await post(world, "/v1/chat/completions", { messages });
    const unloading = { ...body, keep_alive: 0 };
    const absent = await post(world, url, { ...unloading, model: "other:latest" });
    const told = { model: "other:latest", done: true, done_reason: "unload" };
    expect(absent.json()).toMatchObject(told);
    expect(world.story).toEqual(["+tiny"]);
    expect(await post(world, url, { ...unloading, model: "nobody" })).toMatchObject({
      status: 404,
    });
    expect((await post(world, url, { ...unloading, model: "tiny" })).json()).toMatchObject({
      done_reason: "unload",
    });
    await eventually(() => expect(world.story).toEqual(["+tiny", "-tiny"]));
  },
);

test("an empty list of tools is none on Ollama's wire: those of the server are used", async () => {
  const files = provider(fakeTool("read", { content: "It is 7.", isError: false }));
  const world = createModelsWorld({ tools: files });
  await post(world, "/api/chat", { model: "tiny", messages, tools: [], stream: false });
  expect(world.chats["tiny"]!.requests[0]!.tools).toMatchObject([{ name: "read" }]);
});

test.each([
  ["/v1/chat/completions", { messages }],
  ["/v1/responses", { input: "Hi" }],
  ["/v1/messages", { messages, max_tokens: 4 }],
  ["/v1/completions", { prompt: "Hi" }],
  ["/v1/models/load", {}],
])("%s knows a model by the name that Ollama's list gives it", async (url, body) => {
  const world = createModelsWorld();
  const { models } = (await world.app.inject({ url: "/api/tags" })).json() as Json;
  const tagged = models.map(({ name }: Json) => name);
  expect(tagged).toContain("other:latest");
  expect(await post(world, url, { ...body, model: "other:latest" })).toMatchObject({ status: 200 });
  expect(world.story).toEqual(["+other"]);
});

test("a model that is called so itself is meant", async () => {
  const world = createModelsWorld({ names: ["other", "other:latest"], most: 2 });
  await post(world, "/v1/chat/completions", { messages, model: "other:latest" });
  await post(world, "/v1/chat/completions", { messages, model: "other" });
  expect(world.story).toEqual(["+other:latest", "+other"]);
});

test("outputs that a held response waits for do not wait behind a request for another model", async () => {
  stored = await storeWorld();
  const store = (await stored.open()) as SqliteStore;
  const world = createModelsWorld({ store });
  world.chats["tiny"]!.script = held;
  const fermata = { tools: "held" };
  const created = await post(world, "/v1/responses", {
    input: "Hi",
    tools,
    fermata,
    background: true,
  });
  const { id } = created.json();
  const response = async (): Promise<Json> =>
    (await world.app.inject({ url: `/v1/responses/${id}` })).json();
  await eventually(async () => expect((await response()).output).toHaveLength(2));
  const other = post(world, "/v1/chat/completions", { messages, model: "other" });
  await eventually(() => expect(world.pool.list()[1]).toMatchObject({ waiting: 1 }));
  const output = (call_id: string): object => ({
    type: "function_call_output",
    call_id,
    output: "",
  });
  const sent = await post(world, "/v1/responses", {
    previous_response_id: id,
    input: [output("call_1"), output("call_2")],
    tools,
  });
  expect(sent.json()).toEqual({ id, status: "in_progress" });
  await eventually(async () => expect((await response()).status).toBe("completed"));
  expect(await other).toMatchObject({ status: 200 });
  expect(world.story).toEqual(["+tiny", "-tiny", "+other"]);
});

test("a turn that takes a held response's place waits for its own model", async () => {
  stored = await storeWorld();
  const store = (await stored.open()) as SqliteStore;
  const world = createModelsWorld({ store });
  world.chats["tiny"]!.script = held;
  const fermata = { tools: "held" };
  const asked = { input: "Hi", tools, fermata, background: true };
  const { id } = (await post(world, "/v1/responses", asked)).json();
  await eventually(async () => {
    const { output } = (await world.app.inject({ url: `/v1/responses/${id}` })).json() as Json;
    expect(output).toHaveLength(2);
  });
  const turn = { model: "other", previous_response_id: id, input: "Leave it." };
  const answer = await post(world, "/v1/responses", turn);
  expect(answer.json()).toMatchObject({ status: "completed", model: "other" });
  expect(world.story).toEqual(["+tiny", "-tiny", "+other"]);
});

test("a run that waits for its model ends with its conversation, and when the server closes", async () => {
  const world = createModelsWorld({
    loading: (name, signal) =>
      name === "tiny"
        ? Promise.resolve()
        : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  const start = async (): Promise<{ id: string; asked: ReturnType<typeof post> }> => {
    const { id } = (await post(world, "/api/conversations", { model: "other" })).json();
    const asked = post(world, `/api/conversations/${id}/runs`, { message: "Hi" });
    await eventually(() => expect(world.pool.list()[1]!.waiting).toBeGreaterThan(0));
    return { id, asked };
  };
  const first = await start();
  const url = `/api/conversations/${first.id}`;
  expect((await world.app.inject({ method: "DELETE", url })).statusCode).toBe(204);
  expect((await first.asked).json()).toMatchObject({ error: { code: "cancelled" } });
  const second = await start();
  await world.app.close();
  expect((await second.asked).json()).toMatchObject({ error: { code: "engine_closed" } });
  await world.pool.close();
});

const rpc = (method: string, params: object, id?: number): object => ({
  jsonrpc: "2.0",
  method,
  params,
  ...(id === undefined ? {} : { id }),
});
const accept = { accept: "application/json, text/event-stream" };

test("an MCP client that looks loads no model, and what it asks for it can cancel", async () => {
  const world = createModelsWorld();
  world.chats["tiny"]!.script = [{ type: "content", text: "Well" }, { hang: true }];
  const clientInfo = { name: "test", version: "1" };
  const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const begun = await post(world, "/mcp", rpc("initialize", initialize, 0), accept);
  const session = { ...accept, "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  const listed = await post(world, "/mcp", rpc("tools/list", {}, 1), session);
  expect(listed.body).toContain("Asks the language model tiny");
  expect(world.story).toEqual([]);
  const call = rpc("tools/call", { name: "chat", arguments: { prompt: "Hi" } }, 2);
  const called = post(world, "/mcp", call, session);
  await eventually(() => expect(world.chats["tiny"]!.requests).toHaveLength(1));
  await post(world, "/mcp", rpc("notifications/cancelled", { requestId: 2 }), session);
  await called;
  await eventually(() => expect(world.chats["tiny"]!.cancelledCount).toBe(1));
  expect(world.story).toEqual(["+tiny"]);
});

test("who looks at /props and /slots without a name loads no model", async () => {
  const world = createModelsWorld();
  const get = async (url: string): Promise<Json> => (await world.app.inject({ url })).json();
  expect(await get("/props")).toMatchObject({
    role: "router",
    model_alias: "fermata",
    model_path: "none",
    default_generation_settings: { params: {}, n_ctx: 0 },
    chat_template: "",
    endpoint_props: false,
  });
  expect(await get("/slots")).toEqual([]);
  expect(world.story).toEqual([]);
  const named = await get("/props?model=other");
  expect(named).toMatchObject({ model_alias: "other" });
  expect(named).not.toHaveProperty("role");
  expect(await get("/props")).toEqual(named);
  expect(await get("/slots")).not.toEqual([]);
  expect(world.story).toEqual(["+other"]);
});
