/** What /v1/score and /v1/rerank refuse before their model computes anything. The scores are in the model lane. */

import { expect, test } from "vitest";
import { Reranker } from "../../src/engine/reranker.ts";
import { createWorld } from "./fake-services.ts";

/** A pair has as many tokens as letters, at most 10; its score is their number. */
async function post(url: string, body: object) {
  const scored: number[] = [];
  const native = {
    dimensions: 1,
    maxTokens: 10,
    vocabularySize: 100,
    tokenize: async () => [],
    tokenizePairs: async (query: string, documents: string[]) =>
      documents.map((document) => new Int32Array(query.length + document.length)),
    embed: async (pairs: Int32Array[]) => {
      scored.push(...pairs.map(({ length }) => length));
      return pairs.map(({ length }) => Float32Array.of(length));
    },
  };
  const reranker = Object.assign(new Reranker(native), { id: "ranker" });
  const { app } = createWorld({ reranker });
  const response = await app.inject({ method: "POST", url, payload: body });
  return { status: response.statusCode, body: response.json(), scored };
}

test("the texts of two lists, in their order", async () => {
  const { body } = await post("/v1/score", {
    text_1: ["a", "bb", "c"],
    text_2: ["d", "eee", "ffff"],
  });
  expect(body.data.map((one: { score: number }) => one.score)).toEqual([2, 5, 5]);
  expect(body.usage.total_tokens).toBe(12);
});

test.each([
  ["score", { text_1: ["a", "b", "c"], text_2: ["d", "e", "long enough"] }, "text_2[2]"],
  ["score", { text_1: "a", text_2: ["d", "long enough"] }, "text_2[1]"],
  ["score", { text_1: "a", text_2: "long enough" }, "text_2"],
  ["rerank", { query: "a", documents: ["d", "long enough"] }, "documents[1]"],
  ["rerank", { query: "a", texts: ["d", "long enough"] }, "texts[1]"],
])("%s of %j names the text that is too long", async (path, given, param) => {
  const { status, body, scored } = await post(`/v1/${path}`, given);
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ code: "context_length_exceeded", param });
  expect(scored).toEqual([]);
});

test.each<[{ max_tokens_per_doc?: number; truncate?: boolean }, number[]]>([
  [{ max_tokens_per_doc: 3 }, [4, 4]],
  [{ max_tokens_per_doc: 20, truncate: true }, [6, 10]],
  [{ truncate: true }, [6, 10]],
])("documents are cut by %j", async (cut, lengths) => {
  const documents = ["d2345", "long enough"];
  const { body, scored } = await post("/v1/rerank", { query: "a", documents, ...cut });
  expect(scored).toEqual(lengths);
  expect(body.usage.total_tokens).toBe(scored[0]! + scored[1]!);
});

test("a query that is too long by itself is no document's fault that a cut could mend", async () => {
  const query = "longer than ten";
  const { status, body } = await post("/v1/rerank", { query, documents: ["d"], truncate: true });
  expect([status, body.error.code]).toEqual([400, "context_length_exceeded"]);
});
