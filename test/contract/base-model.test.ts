/** A model without a chat template, names of the model, and how long answers are by default. */

import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import { FakeEngine } from "../unit/chat/fake-engine.ts";
import { createWorld, post, type World } from "./fake-services.ts";

const messages = [{ role: "user", content: "Hi" }];

describe("without a chat template", () => {
  let world: World;
  beforeAll(() => {
    const engine = new FakeEngine({ template: "" });
    const base = Object.assign(engine, { model: { ...engine.model, chatTemplate: null } });
    world = createWorld({ realChat: new Chat(base) });
  });
  afterAll(() => world.app.close());

  it.each([
    ["/v1/chat/completions", { messages }],
    ["/v1/chat/completions", { messages, stream: true }],
    ["/v1/chat/completions", { messages, n: 2, stream: true }],
    ["/v1/messages", { messages, model: "x", max_tokens: 5 }],
    ["/v1/messages", { messages, model: "x", max_tokens: 5, stream: true }],
    ["/v1/messages/count_tokens", { messages, model: "x" }],
    ["/v1/responses", { input: "Hi" }],
    ["/v1/responses", { input: "Hi", stream: true }],
    ["/v1/responses/input_tokens", { input: "Hi" }],
    ["/apply-template", { messages }],
  ])("%s is refused with the remedy: %j", async (url, payload) => {
    const reply = await world.app.inject({ method: "POST", url, payload });
    expect(reply.statusCode).toBe(400);
    const { error } = reply.json<{ error: { code?: string; message: string } }>();
    expect(error.message).toContain("--chat-template-file FILE");
    if (!url.startsWith("/v1/messages")) expect(error.code).toBe("model_without_template");
  });

  it("refuses the message of a conversation, and keeps nothing of it", async () => {
    const { app } = world;
    const created = await app.inject({ method: "POST", url: "/api/conversations", payload: {} });
    const { id } = created.json<{ id: string }>();
    const url = `/api/conversations/${id}`;
    const reply = await app.inject({
      method: "POST",
      url: `${url}/runs`,
      payload: { message: "Hi" },
    });
    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ error: { code: "model_without_template" } });
    expect((await app.inject(url)).json()).toMatchObject({ messages: [] });
  });

  it("completes texts, counts tokens and is listed", async () => {
    const inject = async (url: string, payload: object) => {
      const reply = await world.app.inject({ method: "POST", url, payload });
      expect(reply.statusCode).toBe(200);
      return reply.json<unknown>();
    };
    expect(await inject("/v1/completions", { prompt: "Say" })).toMatchObject({
      choices: [{ text: "yes" }],
    });
    const content = "ab";
    const tokens = [97, 98];
    expect(await inject("/tokenize", { content })).toEqual({ tokens });
    expect(await inject("/detokenize", { tokens })).toMatchObject({ content });
    expect((await world.app.inject("/v1/models")).json()).toMatchObject({ data: [{ id: "tiny" }] });
  });
});

describe("aliases", () => {
  const model = { id: "small", aliases: ["gpt-4o", "fast"] };

  it("are listed, found and accepted without a warning; the first answers", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
    const { app } = createWorld({ model, config: { logger } });
    const { data } = (await app.inject("/v1/models")).json<{ data: { id: string }[] }>();
    expect(data.map(({ id }) => id)).toEqual(["small", "gpt-4o", "fast"]);
    expect((await app.inject("/v1/models/fast")).json()).toMatchObject({ id: "fast" });
    expect((await app.inject("/v1/models/slow")).statusCode).toBe(404);
    expect((await post(app, { model: "gpt-4o", messages })).json()).toMatchObject({
      model: "small",
    });
    await app.inject({
      method: "POST",
      url: "/v1/completions",
      payload: { model: "fast", prompt: "Hi" },
    });
    expect(lines).toEqual([]);
    await post(app, { model: "slow", messages });
    expect(lines.join("")).toContain("not loaded; small answers");
    await app.close();
  });
});

describe("--n-predict", () => {
  it("is what a request that does not say may take, and no more than that", async () => {
    const { app, chat, text } = createWorld({ model: { maxTokens: 7 } });
    const send = (url: string, payload: object) => app.inject({ method: "POST", url, payload });
    await send("/v1/chat/completions", { messages });
    await send("/v1/responses", { input: "Hi" });
    await send("/v1/chat/completions", { messages, max_tokens: 20 });
    await send("/v1/responses", { input: "Hi", max_output_tokens: 21 });
    await send("/v1/messages", { model: "x", messages, max_tokens: 22 });
    await send("/v1/messages", { model: "x", messages });
    expect(chat.requests.map(({ maxTokens }) => maxTokens)).toEqual([7, 7, 20, 21, 22, 7]);
    await send("/v1/completions", { prompt: "Hi" });
    await send("/v1/completions", { prompt: "Hi", max_tokens: 3 });
    expect(text.requests.map(({ maxTokens }) => maxTokens)).toEqual([7, 3]);
    await app.close();
  });
});
