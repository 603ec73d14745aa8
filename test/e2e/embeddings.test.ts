// Embeddings through the public door; see embedding-model.ts for what model this is.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Embedder } from "../../src/engine/embedder.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { writeEmbeddingModel } from "../support/embedding-model.ts";

let folder: string;
let server: ScriptedServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-embed-"));
  const modelPath = await writeEmbeddingModel(join(folder, "mean.gguf"), "mean");
  const embedder = Object.assign(await Embedder.load({ modelPath, threads: 1 }), { id: "mean" });
  server = await startScriptedServer({ engine: { parallel: 1, threads: 1 }, embedder });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * b[index]!, 0);
}

async function embed(input: string | string[] | number[] | number[][], options: object = {}) {
  return await server.client.embeddings.create({
    model: "any",
    input,
    encoding_format: "float",
    ...options,
  });
}

const texts = ["Read the file notes.txt.", "Read the file notes.txt!", "12 + 7 = 19"];

test("a text has one vector of length 1, whatever stands beside it", async () => {
  const { data, model, usage } = await embed(texts);
  expect(model).toBe("mean");
  expect(data.map(({ index }) => index)).toEqual([0, 1, 2]);
  const vectors = data.map(({ embedding }) => embedding);
  for (const vector of vectors) expect(dot(vector, vector)).toBeCloseTo(1, 5);
  expect(dot(vectors[0]!, vectors[1]!)).toBeGreaterThan(dot(vectors[0]!, vectors[2]!));
  expect(dot(vectors[0]!, vectors[2]!)).toBeLessThan(0.999);
  for (const [index, text] of texts.entries())
    expect((await embed(text)).data[0]!.embedding).toEqual(vectors[index]);
  const counts = await Promise.all(
    texts.map(async (text) => (await server.engine.tokenize(text)).length),
  );
  expect(usage.prompt_tokens).toBe(counts.reduce((sum, count) => sum + count, 0));
});

test("tokens are taken as they are", async () => {
  const tokens = Array.from(await server.engine.tokenize(texts[0]!));
  const [byText] = (await embed(texts[0]!)).data;
  expect((await embed(tokens)).data[0]!.embedding).toEqual(byText!.embedding);
  expect((await embed([tokens, tokens.slice(1)])).data).toHaveLength(2);
});

test("base64 is the same numbers; fewer dimensions are the first ones", async () => {
  const [whole] = (await embed("Hello")).data;
  const raw = await fetch(`${server.url}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "Hello", encoding_format: "base64" }),
  });
  const body = (await raw.json()) as { data: { embedding: string }[] };
  const bytes = Buffer.from(body.data[0]!.embedding, "base64");
  const floats = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
  expect(floats).toEqual(whole!.embedding);

  const [short] = (await embed("Hello", { dimensions: 16 })).data;
  expect(short!.embedding).toHaveLength(16);
  expect(dot(short!.embedding, short!.embedding)).toBeCloseTo(1, 5);
  const head = whole!.embedding.slice(0, 16);
  expect(dot(short!.embedding, head) / Math.hypot(...head)).toBeCloseTo(1, 5);
});

test("a model that writes, too, takes 2048 tokens of a text", async () => {
  const tokens = Array.from({ length: 2048 }, (_, index) => 100 + (index % 50));
  const { data, usage } = await embed([tokens]);
  expect(usage.prompt_tokens).toBe(2048);
  expect(dot(data[0]!.embedding, data[0]!.embedding)).toBeCloseTo(1, 5);
  await expect(embed([[...tokens, 100]])).rejects.toMatchObject({ status: 400, param: "input[0]" });
});

describe("refusals", () => {
  test.each([
    [{ dimensions: 100_000 }, "dimensions"],
    [{ encoding_format: "hex" }, "encoding_format"],
    [{ input: [] }, "input"],
    [{ input: ["a", ""] }, "input[1]"],
    [{ input: ["a", "x ".repeat(20_000)] }, "input[1]"],
    [{ input: [[99_999_999]] }, "input[0][0]"],
  ])("%j", async (fields, param) => {
    await expect(embed("a", fields)).rejects.toMatchObject({ status: 400, param });
  });

  test("a model that pools nothing, or ranks, is refused at its load", async () => {
    for (const pooling of ["none", "rank"] as const) {
      const modelPath = await writeEmbeddingModel(join(folder, `${pooling}.gguf`), pooling);
      await expect(Embedder.load({ modelPath, threads: 1 })).rejects.toMatchObject({
        code: "model_invalid",
      });
    }
  });

  test("without such a model it is a 400 that says how to get one", async () => {
    const other = await startScriptedServer({ engine: { parallel: 1, threads: 1 } });
    const failure = other.client.embeddings.create({ model: "any", input: "a" });
    await expect(failure).rejects.toMatchObject({ status: 400, param: "model" });
    await expect(failure).rejects.toThrow("--embedding-model");
    await other.close();
  });
});

test("another pooling gives other vectors", async () => {
  const modelPath = await writeEmbeddingModel(join(folder, "last.gguf"), "last");
  const last = await Embedder.load({ modelPath, threads: 1 });
  const [vector] = (await last.embed([texts[0]!])).vectors;
  const [mean] = (await embed(texts[0]!)).data;
  expect(vector).toHaveLength(last.dimensions);
  expect(dot(Array.from(vector!), mean!.embedding)).toBeLessThan(0.99);
});
