import { describe, expect, test } from "vitest";
import { Embedder } from "../../src/engine/embedder.ts";
import { createWorld } from "./fake-services.ts";

const embedder = {
  id: "vectors",
  dimensions: 4,
  maxTokens: 512,
  vocabularySize: 500,
  embed: async (inputs: readonly (string | Int32Array)[]) => ({
    vectors: inputs.map(() => Float32Array.of(0.5, -0.5, 0.5, 0.5)),
    tokenCount: 7,
  }),
};

function embed(body: object, parts: Parameters<typeof createWorld>[0] = { embedder }) {
  const { app } = createWorld(parts);
  return app.inject({ method: "POST", url: "/v1/embeddings", payload: body });
}

test("floats", async () => {
  expect((await embed({ input: ["a", [1, 2]] })).json()).toEqual({
    object: "list",
    data: [
      { object: "embedding", index: 0, embedding: [0.5, -0.5, 0.5, 0.5] },
      { object: "embedding", index: 1, embedding: [0.5, -0.5, 0.5, 0.5] },
    ],
    model: "vectors",
    usage: { prompt_tokens: 7, total_tokens: 7 },
  });
});

test("base64, little-endian", async () => {
  const { data } = (await embed({ input: "a", encoding_format: "base64" })).json();
  expect(data[0].embedding).toBe("AAAAPwAAAL8AAAA/AAAAPw==");
});

test("fewer dimensions have length 1 again", async () => {
  const { data } = (await embed({ input: "a", dimensions: 2 })).json();
  expect(data[0].embedding).toEqual([Math.fround(Math.SQRT1_2), -Math.fround(Math.SQRT1_2)]);
});

describe("/embedding, as llama-server has it", () => {
  const native = (payload: object) =>
    createWorld({ embedder }).app.inject({ method: "POST", url: "/embedding", payload });
  const vector = [0.5, -0.5, 0.5, 0.5];

  test.each([{ content: "a" }, { input: "a", embd_normalize: 2 }, { content: [1, 2] }])(
    "%j",
    async (body) =>
      expect((await native(body)).json()).toEqual([{ index: 0, embedding: [vector] }]),
  );

  test("a list", async () => {
    expect((await native({ content: ["a", [1]] })).json()).toEqual([
      { index: 0, embedding: [vector] },
      { index: 1, embedding: [vector] },
    ]);
  });

  test.each([
    [{}, "content"],
    [{ content: 5 }, "content"],
    [{ content: "a", embd_normalize: -1 }, "embd_normalize"],
  ])("refused: %j", async (body, param) => {
    const response = await native(body);
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe(param);
  });
});

describe("refusals name the field", () => {
  test.each([
    [{}, "input"],
    [{ input: "" }, "input"],
    [{ input: [1, 500] }, "input[1]"],
    [{ input: ["a", {}] }, "input[1]"],
    [{ input: "a", dimensions: 5 }, "dimensions"],
    [{ input: "a", encoding_format: "hex" }, "encoding_format"],
    [{ input: "a", encoding_format: 1 }, "encoding_format"],
  ])("%j", async (body, param) => {
    const response = await embed(body);
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe(param);
  });

  /** A text has as many tokens as characters. */
  const short = new Embedder({
    dimensions: 1,
    maxTokens: 3,
    vocabularySize: 9,
    tokenize: async (texts) => texts.map((text) => new Int32Array(text.length)),
    tokenizePairs: async () => [],
    embed: async (lists) => lists.map(() => Float32Array.of(1)),
  });

  test.each([
    ["/v1/embeddings", { input: "long" }, "input"],
    ["/v1/embeddings", { input: [1, 2, 3, 4] }, "input"],
    ["/v1/embeddings", { input: ["a", "long"] }, "input[1]"],
    ["/v1/embeddings", { input: [[1, 2, 3, 4]] }, "input[0]"],
    ["/embedding", { content: "long" }, "content"],
    ["/embedding", { content: ["a", "long"] }, "content[1]"],
    ["/embedding", { input: "long" }, "input"],
    ["/api/embed", { input: "long", truncate: false }, "input"],
    ["/api/embed", { input: ["long"], truncate: false }, "input[0]"],
  ])("%s %j is too long", async (url, payload, param) => {
    const { app } = createWorld({ embedder: Object.assign(short, { id: "short" }) });
    const response = await app.inject({ method: "POST", url, payload });
    expect(response.statusCode).toBe(400);
    const { error, ...rest } = response.json();
    const told = typeof error === "string" ? { ...rest, message: error } : error;
    expect(told.param).toBe(param);
    expect(told.message).toContain(`"${param}" has 4 tokens`);
  });

  test.each([
    [{ input: "long", truncate_prompt_tokens: 2 }, 2],
    [{ input: ["a", "long"], truncate_prompt_tokens: 2 }, 3],
    [{ input: [1, 2, 3, 4], truncate_prompt_tokens: 1 }, 1],
    [{ input: "longer", truncate_prompt_tokens: -1 }, 3],
    [{ input: [1, 2, 3, 4], truncate_prompt_tokens: -1 }, 3],
  ])("%j is cut to %i tokens", async (payload, tokens) => {
    const { app } = createWorld({ embedder: Object.assign(short, { id: "short" }) });
    const response = await app.inject({ method: "POST", url: "/v1/embeddings", payload });
    expect(response.json().usage).toEqual({ prompt_tokens: tokens, total_tokens: tokens });
  });

  test("without an embedding model", async () => {
    const response = await embed({ input: "a" }, {});
    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ param: "model", code: "unsupported_value" });
  });
});
