/** What an earlier process left unfinished on several models: the server serves at once, and each goes on once its model is there. */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { eventually } from "../support/eventually.ts";
import { type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import { finish, provider } from "./fake-services.ts";
import { held, tools } from "./held-calls.ts";
import { createModelsWorld } from "./models-world.ts";
import type { Json } from "./responses-world.ts";
import { countedTool, holds } from "./restart-world.ts";

const save: ToolCall = { id: "call_3", name: "save", arguments: "{}" };

let stored: StoreWorld;
let store: Awaited<ReturnType<StoreWorld["open"]>>;
let world: ReturnType<typeof createModelsWorld>;
let ran: string[];

async function begin(parts: Parameters<typeof createModelsWorld>[0] = {}): Promise<void> {
  store = await stored.open();
  const { branches } = store;
  const mine = provider(countedTool(ran, "save", { approval: "always" }));
  world = createModelsWorld({ store, branches, tools: mine, ...parts });
  await world.app.ready();
}

async function end(): Promise<void> {
  await world.app.close();
  await store.close();
  await world.pool.close();
}

beforeEach(async () => {
  ran = [];
  stored = await storeWorld();
  await begin({ most: 3 });
});
afterEach(async () => {
  await end();
  await stored.remove();
});

async function send(method: "GET" | "POST" | "DELETE", url: string, payload?: object) {
  const reply = await world.app.inject({ method, url, ...(payload ? { payload } : {}) });
  return { status: reply.statusCode, body: reply.body === "" ? null : (reply.json() as Json) };
}

const response = async (id: string): Promise<Json> =>
  (await send("GET", `/v1/responses/${id}`)).body;
const lastMessage = async (id: string): Promise<Json> =>
  (await send("GET", `/api/conversations/${id}`)).body.messages.at(-1);

/** A response that waits for its client on `other`, a run that waits for a person on `third`: the first ones, or the second. */
async function leave(nth = 1): Promise<{ id: string; conversation: string; run: string }> {
  world.chats["other"]!.script = held;
  const { body: created } = await send("POST", "/v1/responses", {
    model: "other",
    input: "Hi",
    tools,
    background: true,
    fermata: { tools: "held" },
  });
  world.chats["third"]!.script = holds([save]);
  const { body: conversation } = await send("POST", "/api/conversations", { model: "third" });
  const url = `/api/conversations/${conversation.id}/runs`;
  const { body: started } = await send("POST", url, { message: "Save it." });
  await eventually(async () => {
    expect((await send("GET", "/api/approvals")).body.approvals).toHaveLength(nth);
    const rows = await stored.query<object>("SELECT next FROM response_holds WHERE next > 0");
    expect(rows).toHaveLength(nth);
  });
  return { id: created.id, conversation: conversation.id, run: started.run_id };
}

const gated = (): { loading: (name: string) => Promise<void>; load: () => void } => {
  let load = (): void => {};
  const isLoaded = new Promise<void>((resolve) => (load = resolve));
  return { loading: (name) => (name === "tiny" ? Promise.resolve() : isLoaded), load };
};

const never = (name: string, signal: AbortSignal): Promise<void> =>
  name === "tiny"
    ? Promise.resolve()
    : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

test("all stand as in progress from the first request on, and go on one after the other", async () => {
  const { id, conversation, run } = await leave();
  await end();
  const { loading, load } = gated();
  await begin({ loading });
  const answer = [{ type: "content" as const, text: "Done." }, finish("stop")];
  for (const name of ["other", "third"]) world.chats[name]!.script = answer;

  expect(await response(id)).toMatchObject({ status: "in_progress" });
  expect(await lastMessage(conversation)).toMatchObject({ status: "running", run_id: run });
  const { body: list } = await send("GET", "/api/conversations");
  expect(list.conversations[0]).toMatchObject({ run_id: run });
  const followed = world.app.inject({ url: `/v1/responses/${id}?stream=true` });
  const watched = world.app.inject({ url: `/api/conversations/${conversation}/stream` });
  const output = (call_id: string): object => ({
    type: "function_call_output",
    call_id,
    output: "",
  });
  const sent = send("POST", "/v1/responses", {
    model: "other",
    previous_response_id: id,
    input: [output("call_1"), output("call_2")],
  });
  expect(world.story).toEqual([]);
  load();
  expect(await sent).toEqual({ status: 200, body: { id, status: "in_progress" } });
  await eventually(async () => expect((await response(id)).status).toBe("completed"));
  expect((await followed).body).toContain("[DONE]");

  await eventually(async () =>
    expect((await send("GET", "/api/approvals")).body.approvals).toHaveLength(1),
  );
  await send("POST", "/api/approvals/call_3", { decision: "approve" });
  await eventually(async () =>
    expect(await lastMessage(conversation)).toMatchObject({ status: "complete" }),
  );
  expect((await watched).body).toContain("Done.");
  expect(ran).toEqual(["save"]);
});

test("a decision on a call whose run waits for its model is not too late: it is sent again", async () => {
  const { conversation } = await leave();
  const { asking_id: askingId } = (await send("GET", "/api/approvals")).body.approvals[0];
  await end();
  const { loading, load } = gated();
  await begin({ loading, most: 3 });
  world.chats["third"]!.script = [{ type: "content", text: "Done." }, finish("stop")];
  const decide = () =>
    world.app.inject({
      method: "POST",
      url: "/api/approvals/call_3",
      payload: { decision: "approve", asking_id: askingId },
    });
  const early = await decide();
  expect(early.json()).toMatchObject({ error: { code: "engine_closed", param: "call_id" } });
  expect([early.statusCode, early.headers["retry-after"]]).toEqual([503, "1"]);
  load();
  await eventually(async () => expect((await decide()).statusCode).toBe(200));
  await eventually(async () =>
    expect(await lastMessage(conversation)).toMatchObject({ status: "complete" }),
  );
  expect(ran).toEqual(["save"]);
});

test("outputs of its calls alone find a response that waits for its model, by whatever they are sent", async () => {
  const { id } = await leave();
  await end();
  const { loading, load } = gated();
  await begin({ loading, most: 3 });
  world.chats["other"]!.script = [{ type: "content", text: "Done." }, finish("stop")];
  const delivered = send("POST", `/v1/responses/${id}/tool_outputs`, {
    tool_call_id: "call_2",
    output: "two",
  });
  const turn = send("POST", "/v1/responses", {
    model: "tiny",
    input: [
      { type: "function_call", call_id: "call_1", name: "list_files", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: "one" },
    ],
  });
  load();
  expect((await delivered).status).toBe(200);
  // A turn of its own, which takes the response's place.
  expect(await turn).toMatchObject({ status: 200, body: { model: "tiny" } });
  expect(await response(id)).toMatchObject({ status: "cancelled" });
});

test("what waits for its model is left to the next process, and can be cancelled", async () => {
  const { id, conversation, run } = await leave();
  await end();
  await begin({ loading: never });
  await end();
  await begin({ loading: never });
  expect(await response(id)).toMatchObject({ status: "in_progress" });
  expect(await lastMessage(conversation)).toMatchObject({ status: "running" });

  const cancelled = await send("POST", `/v1/responses/${id}/cancel`);
  expect(cancelled).toMatchObject({ status: 200, body: { status: "cancelled" } });
  await send("POST", `/api/conversations/${conversation}/runs/${run}/cancel`);
  await eventually(async () =>
    expect(await lastMessage(conversation)).toMatchObject({ status: "cancelled" }),
  );
});

test("what waits for its model can be deleted", async () => {
  const { id, conversation } = await leave();
  await end();
  await begin({ loading: never });
  expect(await send("DELETE", `/v1/responses/${id}`)).toMatchObject({ status: 200 });
  expect(await send("GET", `/v1/responses/${id}`)).toMatchObject({ status: 404 });
  expect(await send("DELETE", `/api/conversations/${conversation}`)).toMatchObject({ status: 204 });
  expect(await send("GET", `/api/conversations/${conversation}`)).toMatchObject({ status: 404 });
});

test("what is given up waits for no other of its model, and the others go on", async () => {
  const [first, second, third] = [await leave(1), await leave(2), await leave(3)];
  await end();
  const { loading, load } = gated();
  await begin({ loading });
  for (const { id } of [third, second])
    expect(await send("DELETE", `/v1/responses/${id}`)).toMatchObject({ status: 200 });
  const { conversation, run } = third;
  await send("POST", `/api/conversations/${conversation}/runs/${run}/cancel`);
  await eventually(async () =>
    expect(await lastMessage(conversation)).toMatchObject({ status: "cancelled" }),
  );
  const url = `/api/conversations/${second.conversation}`;
  expect(await send("DELETE", url)).toMatchObject({ status: 204 });
  expect(await send("GET", url)).toMatchObject({ status: 404 });

  expect(world.story).toEqual([]);
  load();
  for (const call_id of ["call_1", "call_2"])
    await send("POST", `/v1/responses/${first.id}/tool_outputs`, {
      tool_call_id: call_id,
      output: "",
    });
  await eventually(async () => expect((await response(first.id)).status).toBe("completed"));
});
