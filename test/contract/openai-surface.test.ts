/** Every method of openai's client does what it says, or is told clearly that there is no such thing. */

import type { AddressInfo } from "node:net";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { argumentsOf, type Exchange, methodsOf } from "../support/sdk-surface.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";
import { fakeEmbedder } from "./fake-services.ts";

const exchanges: Exchange[] = [];
let world: ResponsesWorld;
let client: OpenAI;

beforeAll(async () => {
  world = await createResponsesWorld({ embedder: fakeEmbedder });
  await world.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = world.app.server.address() as AddressInfo;
  client = clientFor(`http://127.0.0.1:${port}/v1`);
});
afterAll(() => world.close());

function clientFor(baseURL: string): OpenAI {
  return new OpenAI({
    apiKey: "none",
    adminAPIKey: "none",
    webhookSecret: "none",
    baseURL,
    maxRetries: 0,
    timeout: 10_000,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      // The client tries what `fetch` can do on an address of its own.
      if (!String(input).startsWith("http")) return response;
      const body = await response.clone().text();
      exchanges.push({
        method: init?.method ?? "GET",
        path: new URL(String(input)).pathname,
        status: response.status,
        type: response.headers.get("content-type") ?? "",
        body,
      });
      return response;
    },
  });
}

const messages = [{ role: "user", content: "Hi" }];
const chat = { model: "tiny", messages };
const response = { model: "tiny", input: "Hi" };
const item = { type: "message", role: "user", content: "Hi" };
/** Each is called with a copy of its own. */
const keep = async (): Promise<{
  completion: string;
  response: string;
  conversation: string;
  item: string;
}> => {
  const made = async (path: string, body: object): Promise<{ id: string }> =>
    (await world.call("POST", path, body)).body as { id: string };
  const conversation = (await made("/v1/conversations", { items: [item] })).id;
  const { body } = await world.call("GET", `/v1/conversations/${conversation}/items`);
  return {
    completion: (await made("/v1/chat/completions", { ...chat, store: true })).id,
    response: (await made("/v1/responses", { ...response, background: true })).id,
    conversation,
    item: (body as { data: { id: string }[] }).data[0]!.id,
  };
};
type Kept = Awaited<ReturnType<typeof keep>>;

const responses: Record<string, (kept: Kept) => unknown[]> = {
  "responses.cancel": (kept) => [kept.response],
  "responses.compact": () => [response],
  "responses.create": () => [response],
  "responses.delete": (kept) => [kept.response],
  "responses.inputItems.list": (kept) => [kept.response],
  "responses.inputTokens.count": () => [response],
  "responses.retrieve": (kept) => [kept.response],
};
const inBeta = Object.entries(responses).map(([name, args]) => [`beta.${name}`, args] as const);

/** What this server has, and what it is asked with. */
const supported: Record<string, (kept: Kept) => unknown[]> = {
  "chat.completions.create": () => [chat],
  "chat.completions.delete": (kept) => [kept.completion],
  "chat.completions.list": () => [],
  "chat.completions.messages.list": (kept) => [kept.completion],
  "chat.completions.parse": () => [chat],
  "chat.completions.retrieve": (kept) => [kept.completion],
  "chat.completions.runTools": () => [{ ...chat, tools: [] }],
  "chat.completions.stream": () => [chat],
  "chat.completions.update": (kept) => [kept.completion, { metadata: { a: "b" } }],
  "completions.create": () => [{ model: "tiny", prompt: "A" }],
  "conversations.create": () => [{}],
  "conversations.delete": (kept) => [kept.conversation],
  "conversations.items.create": (kept) => [kept.conversation, { items: [item] }],
  "conversations.items.delete": (kept) => [kept.item, { conversation_id: kept.conversation }],
  "conversations.items.list": (kept) => [kept.conversation],
  "conversations.items.retrieve": (kept) => [kept.item, { conversation_id: kept.conversation }],
  "conversations.retrieve": (kept) => [kept.conversation],
  "conversations.update": (kept) => [kept.conversation, { metadata: { a: "b" } }],
  "embeddings.create": () => [{ model: "vectors", input: "A" }],
  "models.list": () => [],
  "models.retrieve": () => ["tiny"],
  ...responses,
  ...Object.fromEntries(inBeta),
  "responses.parse": () => [response],
  "responses.stream": () => [response],
};
/** They send nothing, or nothing without a file. */
const local = [
  "vectorStores.fileBatches.uploadAndPoll",
  "webhooks.unwrap",
  "webhooks.verifySignature",
];

const names = methodsOf(clientFor("http://127.0.0.1:1")).map(({ name }) => name);

test("the walk finds what there is", () => {
  expect(names.length).toBeGreaterThan(300);
  for (const name of [...Object.keys(supported), ...local]) expect(names).toContain(name);
});

test.each(Object.keys(supported))("%s works", async (name) => {
  const method = methodsOf(client).find((candidate) => candidate.name === name)!;
  const args = supported[name]!(await keep());
  exchanges.length = 0;
  await settled(method.call(...args));
  expect(exchanges).toHaveLength(1);
  expect(exchanges[0]).toMatchObject({ status: 200 });
});

const others = names.filter((name) => supported[name] === undefined && !local.includes(name));

test.each(others)("%s is told what there is", async (name) => {
  const method = methodsOf(client).find((candidate) => candidate.name === name)!;
  exchanges.length = 0;
  await expect(settled(method.call(...argumentsOf(method)))).rejects.toThrow(OpenAI.APIError);
  expect(exchanges).toHaveLength(1);
  const [{ status, type, body }] = exchanges as [Exchange];
  expect(type).toBe("application/json; charset=utf-8");
  const { error } = JSON.parse(body) as { error: { message: string; code: string } };
  expect(error).toEqual({
    message: expect.any(String),
    type: expect.stringMatching(/^(?:not_found|invalid_request)_error$/),
    param: null,
    code: expect.any(String),
  });
  if (status === 405) expect(error.code).toBe("method_not_allowed");
  else {
    expect([status, error.code]).toEqual([404, "not_found"]);
    expect(error.message).toContain("/v1/chat/completions");
  }
});

/** Helpers give an object that goes on by itself. */
async function settled(called: unknown): Promise<void> {
  if (called instanceof Object && "done" in called && typeof called.done === "function")
    await (called.done as () => Promise<void>)();
  else await called;
}
