/** Vectors over Ollama's API. */

import { expect, test } from "vitest";
import { createWorld, fakeEmbedder, type World } from "./fake-services.ts";

function post({ app }: World, url: string, body: object) {
  return app.inject({ method: "POST", url, payload: body });
}

test("embeddings of a list", async () => {
  const vector = Array.from({ length: 8 }, () => 0.5);
  const world = createWorld({ embedder: fakeEmbedder });
  const response = await post(world, "/api/embed", { model: "vectors", input: ["a", "b"] });
  expect(response.json()).toMatchObject({
    model: "vectors",
    embeddings: [vector, vector],
    prompt_eval_count: 2,
  });
  const one = await post(world, "/api/embed", { model: "vectors:latest", input: "a" });
  expect(one.json()).toMatchObject({
    model: "vectors:latest",
    embeddings: [vector],
    prompt_eval_count: 1,
  });
  const without = await post(createWorld(), "/api/embed", { input: "a" });
  expect(without.statusCode).toBe(400);
  expect(without.json()).toMatchObject({ error: expect.stringContaining("--embedding-model") });
});

test.each([
  ["/api/embed", {}, { embeddings: [], prompt_eval_count: 0 }],
  ["/api/embed", { input: "" }, { embeddings: [], prompt_eval_count: 0 }],
  ["/api/embed", { input: [] }, { embeddings: [], prompt_eval_count: 0 }],
  ["/api/embed", { input: ["", "a"] }, { prompt_eval_count: 2 }],
  ["/api/embeddings", {}, { embedding: [] }],
  ["/api/embeddings", { prompt: "" }, { embedding: [] }],
])("%s of nothing: %j", async (url, body, answer) => {
  const response = await post(createWorld({ embedder: fakeEmbedder }), url, body);
  expect(response.statusCode).toBe(200);
  expect(response.json()).toMatchObject(answer);
});

test.each([
  ["/api/embed", { input: ["a"] }, true],
  ["/api/embed", { input: ["a"], truncate: true }, true],
  ["/api/embed", { input: ["a"], truncate: false }, false],
  ["/api/embeddings", { prompt: "a" }, true],
])("%s: %j is cut to what the model reads: %s", async (url, body, cut) => {
  const asked: unknown[] = [];
  const embedder: typeof fakeEmbedder = {
    ...fakeEmbedder,
    embed: async (inputs, options) => {
      asked.push(options?.truncate);
      return await fakeEmbedder.embed(inputs);
    },
  };
  expect((await post(createWorld({ embedder }), url, body)).statusCode).toBe(200);
  expect(asked).toEqual([cut]);
});
