/** How clients that are not OpenAI's own spell addresses and bodies. */

import { request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";
import { createWorld, fakeEmbedder } from "./fake-services.ts";

const user = { role: "user", content: "Hi" };
const curlForm = "application/x-www-form-urlencoded";
let open: ResponsesWorld | undefined;

afterEach(async () => {
  await open?.close();
  open = undefined;
});

describe("a path is found", () => {
  test.each([
    ["POST", "/chat/completions", { messages: [user] }, "chat.completion"],
    ["POST", "/v1/chat/completions/", { messages: [user] }, "chat.completion"],
    ["POST", "//v1//chat/completions?x=1", { messages: [user] }, "chat.completion"],
    ["POST", "/completions", { prompt: "A" }, "text_completion"],
    ["POST", "/completions/?x=1", { prompt: "A" }, "text_completion"],
    ["POST", "/embeddings", { input: "A" }, "list"],
    ["POST", "/responses", { input: "A", store: false }, "response"],
    ["POST", "/responses/input_tokens/", { input: "A" }, "response.input_tokens"],
    ["GET", "/models", undefined, "list"],
    ["GET", "http://localhost:8000/v1/models", undefined, "list"],
    ["GET", "/models/tiny/", undefined, "model"],
  ] as const)("%s %s", async (method, url, payload, object) => {
    const { app } = createWorld({ embedder: fakeEmbedder });
    const response = await app.inject({ method, url, ...(payload ? { payload } : {}) });
    expect(response.json()).toMatchObject({ object });
    expect(response.statusCode).toBe(200);
  });

  test("of Anthropic's API, with its error shape", async () => {
    const { app } = createWorld();
    const payload = { messages: [user], max_tokens: 5 };
    const answer = await app.inject({ method: "POST", url: "/messages", payload });
    expect(answer.json()).toMatchObject({ type: "message" });
    const count = await app.inject({ method: "POST", url: "/messages/count_tokens", payload });
    expect(count.json()).toEqual({ input_tokens: 20 });
    const wrong = await app.inject({ method: "POST", url: "/messages/", payload: {} });
    expect(wrong.json()).toMatchObject({ type: "error" });
    const absent = await app.inject({ url: "/v1/messages/batches?limit=1" });
    expect(absent.statusCode).toBe(404);
    expect(absent.json()).toMatchObject({ type: "error", error: { type: "not_found_error" } });
  });

  test("of what has no version", async () => {
    const { app } = createWorld({ config: { apiKeys: ["k"] } });
    const health = await app.inject({ url: "/v1/health/" });
    expect(health.json()).toEqual({ status: "ok", model: "tiny", step_age_ms: 0 });
    const headers = { authorization: "Bearer k" };
    const payload = { content: "A" };
    const tokens = await app.inject({ method: "POST", url: "/v1/tokenize", payload, headers });
    expect(tokens.json()).toEqual({ tokens: [65] });
  });

  test("another spelling asks for the same key and the same method", async () => {
    const { app } = createWorld({ config: { apiKeys: ["k"] } });
    expect((await app.inject({ url: "/models/" })).statusCode).toBe(401);
    const headers = { "x-api-key": "k" };
    const wrong = await app.inject({ url: "/embeddings/", headers });
    expect([wrong.statusCode, wrong.headers["allow"]]).toEqual([405, "POST"]);
  });

  test("the document has each path once", async () => {
    const { app } = createWorld();
    const { paths } = (await app.inject({ url: "/openapi.json" })).json() as { paths: object };
    expect(Object.keys(paths)).toContain("/v1/chat/completions");
    expect(Object.keys(paths)).not.toContain("/chat/completions");
  });
});

describe("a path that is not there", () => {
  const missing = async (method: "GET" | "POST", url: string, type?: string) => {
    const response = await createWorld().app.inject({
      method,
      url,
      payload: "--x--",
      headers: type === undefined ? {} : { "content-type": type },
    });
    expect(response.statusCode).toBe(404);
    return response.json().error as { message: string; code: string; type: string };
  };

  test.each([
    ["/v1/chat/completion", "/v1/chat/completions"],
    ["/v1/embeding", "/v1/embeddings"],
    ["/response/x/cancel", "/v1/responses/{id}/cancel"],
    ["/token", "/tokenize"],
  ])("%s: the nearest is %s, and all are named", async (url, nearest) => {
    const { message, code, type } = await missing("POST", url);
    expect([code, type]).toEqual(["not_found", "not_found_error"]);
    expect(message.startsWith(`There is no POST ${url}. There are ${nearest}, `)).toBe(true);
    for (const path of ["/v1/messages", "/v1/models", "/health", "/tokenize"])
      expect(message).toContain(path);
  });

  test.each([
    ["POST", "/api/push"],
    ["POST", "/api/create"],
    ["POST", "/api/blobs/sha256:00"],
    ["DELETE", "/api/delete"],
  ] as const)(
    "%s %s, which Ollama has, is told as Ollama's clients read it",
    async (method, url) => {
      const response = await createWorld().app.inject({ method, url, payload: {} });
      const error = `There is no ${method} ${url}. Models are files here: fetch one with fermata pull, `;
      expect([response.statusCode, response.json()]).toMatchObject([
        404,
        { error: expect.stringContaining(error), code: "not_found" },
      ]);
    },
  );

  test("nothing of its body is read", async () => {
    await missing("POST", "/v1/files", "multipart/form-data; boundary=x");
    await missing("POST", "/v1/files", "application/json");
  });
});

describe("a body's type", () => {
  const chat = async (headers: Record<string, string>) =>
    createWorld().app.inject({
      method: "POST",
      url: "/v1/chat/completions",
      payload: JSON.stringify({ messages: [user] }),
      headers: { host: "127.0.0.1:8000", ...headers },
    });

  test.each([curlForm, "text/plain;charset=UTF-8", "application/json", "text/json", ""])(
    "%j is read as JSON",
    async (type) => {
      const response = await chat(type === "" ? {} : { "content-type": type });
      expect(response.statusCode).toBe(200);
    },
  );

  test.each(["application/xml", "multipart/form-data; boundary=x", "application/octet-stream"])(
    "%s is refused",
    async (type) => {
      const response = await chat({ "content-type": type });
      expect(response.statusCode).toBe(415);
      expect(response.json().error.code).toBe("unsupported_media_type");
    },
  );

  test("a compressed one is told apart from broken JSON", async () => {
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    const { statusCode, json } = await chat(headers);
    expect([statusCode, json().error]).toMatchObject([
      415,
      { code: "unsupported_media_type", param: "content-encoding" },
    ]);
  });

  test("none at all, on a socket", async () => {
    open = await createResponsesWorld();
    await open.app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = open.app.server.address() as AddressInfo;
    const status = await new Promise((resolve, reject) => {
      const options = { port, method: "POST", path: "/v1/chat/completions" };
      const request = httpRequest(options, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on("error", reject);
      request.end(JSON.stringify({ messages: [user] }));
    });
    expect(status).toBe(200);
  });

  test.each([
    [{ origin: "https://evil.example" }],
    [{ origin: "null" }],
    [{ "sec-fetch-site": "cross-site" }],
    [{ "sec-fetch-site": "same-site", origin: "http://127.0.0.1:3000" }],
    [{ "sec-fetch-site": "cross-site", origin: "http://127.0.0.1:8000" }],
  ])("a page of another site may send none that it need not ask for: %j", async (headers) => {
    for (const type of [curlForm, "text/plain", "multipart/form-data; boundary=x"]) {
      const response = await chat({ ...headers, "content-type": type } as Record<string, string>);
      expect(response.statusCode).toBe(415);
      expect(response.json().error.message).toContain("--cors-origin");
    }
  });

  test("nor make something with a request that has no body", async () => {
    open = await createResponsesWorld();
    const headers = { "sec-fetch-site": "cross-site" };
    const url = "/v1/conversations";
    expect((await open.app.inject({ method: "POST", url, headers })).statusCode).toBe(415);
    expect((await open.app.inject({ method: "POST", url })).statusCode).toBe(200);
  });

  test("the server's own page and pages that are allowed may", async () => {
    const own = { origin: "http://127.0.0.1:8000", "sec-fetch-site": "same-origin" };
    expect((await chat({ ...own, "content-type": "text/plain" })).statusCode).toBe(200);
    const behindProxy = { ...own, origin: "https://chat.example", host: "localhost:8000" };
    expect((await chat({ ...behindProxy, "content-type": "text/plain" })).statusCode).toBe(200);
    const origin = "https://app.example";
    const { app } = createWorld({ config: { corsOrigins: [origin] } });
    const response = await app.inject({
      method: "POST",
      url: "/v1/chat/completions",
      payload: JSON.stringify({ messages: [user] }),
      headers: { origin, "sec-fetch-site": "cross-site", "content-type": "text/plain" },
    });
    expect(response.statusCode).toBe(200);
  });
});

describe("a type without a body", () => {
  const typed = { "content-type": "application/json" };

  test("is none where none is wanted", async () => {
    open = await createResponsesWorld();
    const { id } = (await open.create({ input: "Hi", background: true })).body;
    const cancelled = await open.app.inject({
      method: "POST",
      url: `/v1/responses/${id}/cancel`,
      headers: typed,
    });
    expect(cancelled.json()).toMatchObject({ id, object: "response" });
    for (const url of [`/v1/responses/${id}`, "/v1/conversations/conv_none"]) {
      const deleted = await open.app.inject({ method: "DELETE", url, headers: typed });
      expect([200, 404]).toContain(deleted.statusCode);
    }
    const created = await open.app.inject({
      method: "POST",
      url: "/v1/conversations",
      headers: { ...typed, "content-length": "0" },
    });
    expect(created.json()).toMatchObject({ object: "conversation" });
  });

  test("is told where one is", async () => {
    const url = "/v1/chat/completions";
    const response = await createWorld().app.inject({ method: "POST", url, headers: typed });
    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ code: "invalid_json", param: "body" });
  });
});

describe("without API keys", () => {
  const dummies = [{}, { authorization: "Bearer none" }, { "x-api-key": "x" }];

  test("made-up keys are one owner of what is stored", async () => {
    open = await createResponsesWorld();
    const { id } = (await open.create({ input: "Hi" }, { authorization: "Bearer none" })).body;
    for (const headers of dummies) {
      const found = await open.app.inject({ url: `/v1/responses/${id}`, headers });
      expect(found.json()).toMatchObject({ id });
    }
  });

  test("and of what is in the cache", async () => {
    const { app, chat } = createWorld();
    const payload = { messages: [user] };
    for (const headers of dummies)
      await app.inject({ method: "POST", url: "/v1/chat/completions", payload, headers });
    expect(new Set(chat.requests.map(({ owner }) => owner)).size).toBe(1);
  });
});
