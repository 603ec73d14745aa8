// A BERT with a classifier, ranked over HTTP and held against its definition.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Reranker } from "../../src/engine/reranker.ts";
import { BertModel } from "../support/bert-model.ts";
import { modelPath as shipped } from "../support/engine.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const bert = new BertModel(3);
bert.addClassifier(4);
const query = "the cat";
const documents = ["the cat sat", "a dog", "cat", "rain on the hill", "sat"];
const expected = documents.map((document) => bert.score(bert.pairTokens(query, document)));

let folder: string;
let server: ScriptedServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-rerank-"));
  const modelPath = await bert.write(join(folder, "ranker.gguf"), "rank");
  const reranker = Object.assign(await Reranker.load({ modelPath, threads: 1 }), { id: "ranker" });
  server = await startScriptedServer({ engine: { parallel: 1, threads: 1 }, reranker });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

// oxlint-disable-next-line typescript/no-explicit-any
async function rank(body: object, path = "/v1/rerank"): Promise<{ status: number; body: any }> {
  const reply = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: reply.status, body: await reply.json() };
}

test("scores are those of the definition, the best first", async () => {
  const { status, body } = await rank({ query, documents });
  expect(status).toBe(200);
  const best = [...expected.keys()].toSorted((a, b) => expected[b]! - expected[a]!);
  expect(body.results.map(({ index }: { index: number }) => index)).toEqual(best);
  for (const { index, relevance_score: score } of body.results)
    expect(score).toBeCloseTo(expected[index]!, 2);
  const tokens = documents.reduce((sum, one) => sum + bert.pairTokens(query, one).length, 0);
  expect(body).toMatchObject({
    model: "ranker",
    object: "list",
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
});

test.each(["/rerank", "/reranking", "/v1/reranking", "/v2/rerank"])(
  "%s is the same",
  async (path) => {
    const { body } = await rank({ query, documents });
    expect(body.id).toMatch(/^rerank-/);
    const { body: same } = await rank({ query, documents }, path);
    expect(same).toEqual({ ...body, id: expect.stringMatching(/^rerank-/) });
    expect(same.id).not.toBe(body.id);
  },
);

describe("scores of pairs, as vLLM has them", () => {
  const score = (body: object, path = "/v1/score") => rank(body, path);

  test("one text with each of the others, in their order", async () => {
    const { status, body } = await score({ text_1: query, text_2: documents });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: expect.any(String),
      object: "list",
      created: expect.any(Number),
      model: "ranker",
      usage: { prompt_tokens: expect.any(Number), completion_tokens: 0 },
    });
    expect(body.data).toEqual(
      expected.map((value, index) => ({
        index,
        object: "score",
        score: expect.closeTo(value, 2),
      })),
    );
  });

  test("the texts of two lists with each other", async () => {
    const { body } = await score({ text_1: [query, "rain"], text_2: ["sat", "a dog"] }, "/score");
    const pairs = [bert.pairTokens(query, "sat"), bert.pairTokens("rain", "a dog")];
    expect(body.data.map((one: { score: number }) => one.score)).toEqual(
      pairs.map((tokens) => expect.closeTo(bert.score(tokens), 2)),
    );
    expect(body.usage.total_tokens).toBe(pairs.flat().length);
  });

  test.each([
    [{ text_2: "a" }, "text_1"],
    [{ text_1: query, text_2: [] }, "text_2"],
    [{ text_1: ["a", "b"], text_2: ["a", "b", "c"] }, "text_2"],
    [{ text_1: ["a", "b"], text_2: ["a", "x ".repeat(2000)] }, "text_2[1]"],
    [{ text_1: query, text_2: "x ".repeat(2000) }, "text_2"],
  ])("%j is a 400", async (body, param) => {
    expect(await score(body)).toMatchObject({ status: 400, body: { error: { param } } });
  });
});

test("objects, top_n and the documents in the answer", async () => {
  const { body: all } = await rank({ query, documents });
  const objects = documents.map((text) => ({ text }));
  const { body } = await rank({ query, documents: objects, top_n: 2, return_documents: true });
  expect(body.results).toEqual(
    all.results.slice(0, 2).map((result: { index: number }) => ({
      ...result,
      document: { text: documents[result.index] },
    })),
  );
});

test("texts, as text-embeddings-inference has them", async () => {
  const { body: all } = await rank({ query, documents });
  const { body } = await rank({ query, texts: documents, return_text: true });
  expect(body).toEqual(
    all.results.map(
      ({ index, relevance_score: score }: { index: number; relevance_score: number }) => ({
        index,
        score,
        text: documents[index],
      }),
    ),
  );
});

test("a special token's spelling in a text is text", async () => {
  const { body } = await rank({ query, documents: ["a [SEP] b"] });
  // As letters, it is more than one token.
  expect(body.usage.prompt_tokens).toBeGreaterThan(bert.pairTokens(query, "a b").length + 1);
});

describe("refusals", () => {
  test.each([
    [{ documents }, "query"],
    [{ query }, "documents"],
    [{ query, documents: [] }, "documents"],
    [{ query, documents: "one" }, "documents"],
    [{ query, documents: ["a", 3] }, "documents[1]"],
    [{ query, documents: ["a", {}] }, "documents[1].text"],
    [{ query, documents: ["a", "x ".repeat(2000)] }, "documents[1]"],
    [{ query, documents, top_n: 0 }, "top_n"],
  ])("%j", async (body, param) => {
    expect(await rank(body)).toMatchObject({ status: 400, body: { error: { param } } });
  });

  test("a file without a classifier is refused at its load", async () => {
    const plain = await new BertModel(1).write(join(folder, "plain.gguf"), "rank");
    for (const modelPath of [plain, shipped])
      await expect(Reranker.load({ modelPath, threads: 1 })).rejects.toMatchObject({
        code: "model_invalid",
        message: expect.stringContaining("does not rank texts"),
      });
  });

  test("without such a model it is a 400 that says how to get one", async () => {
    const other = await startScriptedServer({ engine: { parallel: 1, threads: 1 } });
    const reply = await fetch(`${other.url}/v1/rerank`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query, documents }),
    });
    expect(reply.status).toBe(400);
    expect(await reply.text()).toContain("--rerank-model");
    await other.close();
  });
});
