import { describe, expect, test } from "vitest";
import { createWorld } from "./fake-services.ts";

const embedder = {
  id: "vectors",
  dimensions: 4,
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

  test("without an embedding model", async () => {
    const response = await embed({ input: "a" }, {});
    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ param: "model", code: "unsupported_value" });
  });
});
