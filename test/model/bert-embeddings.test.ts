// Embeddings of an encoder, whose attention has no order: what BERT's definition says, both poolings.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Embedder } from "../../src/engine/embedder.ts";
import { Engine } from "../../src/engine/engine.ts";
import { BertModel, type Pooling } from "../support/bert-model.ts";
import { writeEmbeddingModel } from "../support/embedding-model.ts";
import { modelPath } from "../support/engine.ts";

const model = new BertModel(7);
const texts = ["the cat sat", "sat the cat", "q", "abcdef the quick fox"];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-bert-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function load(modelPath: string): Promise<Embedder> {
  return Embedder.load({ modelPath, threads: 1 });
}

test.each<Pooling>(["mean", "cls"])("%s", async (pooling) => {
  const embedder = await load(await model.write(join(folder, `${pooling}.gguf`), pooling));
  expect(embedder.dimensions).toBe(model.dimensions);
  const { vectors, tokenCount } = await embedder.embed(texts);
  expect(tokenCount).toBe(texts.flatMap((text) => model.tokens(text)).length);
  for (const [index, text] of texts.entries()) {
    const expected = model.embed(model.tokens(text), pooling);
    vectors[index]!.forEach((value, column) => expect(value).toBeCloseTo(expected[column]!, 2));
  }
  // Tokens are taken as they are, and the order of words is heard.
  const { vectors: same } = await embedder.embed([Int32Array.from(model.tokens(texts[0]!))]);
  expect(same[0]).toEqual(vectors[0]);
  expect(dot(vectors[0]!, vectors[1]!)).toBeLessThan(0.999);
});

test("the two poolings differ", () => {
  const tokens = model.tokens(texts[0]!);
  expect(dot(model.embed(tokens, "mean"), model.embed(tokens, "cls"))).toBeLessThan(0.99);
});

test("the pooling that is asked for counts, whatever the file says", async () => {
  const modelPath = await model.write(join(folder, "asked.gguf"), "mean");
  const embedder = await Embedder.load({ modelPath, threads: 1, pooling: "cls" });
  const { vectors } = await embedder.embed(texts);
  for (const [index, text] of texts.entries()) {
    const expected = model.embed(model.tokens(text), "cls");
    vectors[index]!.forEach((value, column) => expect(value).toBeCloseTo(expected[column]!, 2));
  }
});

test("a text that has more tokens than bytes", async () => {
  const embedder = await load(await model.write(join(folder, "blanks.gguf"), "mean", "llama"));
  // Each is three bytes, and so is the one that is put before the text.
  const { tokenCount } = await embedder.embed([" ".repeat(15)]);
  expect(tokenCount).toBe(1 + 16 * 3);
});

// llama.cpp's matcher calls itself for each character of a word.
test.each([
  ["", "the"],
  [", with a written blank", "\u2581"],
])("words of any length%s", async (_name, token) => {
  const path = await writeEmbeddingModel(join(folder, "words.gguf"), "mean", { pre: "tekken" });
  const file = await readFile(path);
  file.write(token, file.indexOf("\u0003\0\0\0\0\0\0\0the", 0, "latin1") + 8);
  await writeFile(path, file);
  const embedder = await load(path);
  for (const word of ["x", "-", " "]) {
    const { tokenCount } = await embedder.embed([word.repeat(300_000)], { truncate: true });
    expect(tokenCount).toBe(embedder.maxTokens);
  }
  const { vectors } = await embedder.embed(["a cat", "a dog"]);
  expect(vectors[0]).not.toEqual(vectors[1]);
});

test("a vocabulary without the token that it wants before each text", async () => {
  const options = { pre: "chatglm-bpe", lacksBos: true };
  const path = await writeEmbeddingModel(join(folder, "lacks-bos.gguf"), "mean", options);
  await expect(load(path)).rejects.toMatchObject({
    code: "model_invalid",
    message: expect.stringContaining("token_bos"),
  });
});

test("a model that generates embeds with the pooling that is asked for, and none without", async () => {
  await expect(load(modelPath)).rejects.toMatchObject({
    code: "model_invalid",
    message: expect.stringMatching(/^The file of qwen2 F16 names .*--pooling mean, cls or last/),
  });
  const pooled = ["mean", "cls", "last"] as const;
  const [mean, first, last] = await Promise.all(
    pooled.map(async (pooling) => {
      const embedder = await Embedder.load({ modelPath, threads: 1, pooling });
      return (await embedder.embed(["the cat sat", "the cat ran"])).vectors;
    }),
  );
  for (const [vector] of [mean!, first!, last!]) expect(dot(vector!, vector!)).toBeCloseTo(1, 5);
  // Both texts begin with the same token, which sees nothing of what follows.
  expect(dot(first![0]!, first![1]!)).toBeCloseTo(1, 5);
  expect(dot(last![0]!, last![1]!)).toBeLessThan(0.999);
  expect(dot(mean![0]!, last![0]!)).toBeLessThan(0.999);
});

test("an encoder is no model to generate with", async () => {
  const path = await model.write(join(folder, "encoder.gguf"), "mean");
  await expect(Engine.load({ modelPath: path, threads: 1 })).rejects.toMatchObject({
    code: "model_invalid",
    message: expect.stringMatching(/embeds texts and generates none.*--embedding-model/),
  });
});

test.each([
  ["bert.block_count", 2, 0],
  ["bert.pooling_type", 1, 99],
])("a file that llama.cpp dies of is refused: %s", async (key, was, is) => {
  const sound = await readFile(await model.write(join(folder, "sound.gguf"), "mean"));
  const at = sound.indexOf(key) + key.length + 4;
  expect(sound.readUInt32LE(at)).toBe(was);
  sound.writeUInt32LE(is, at);
  const damaged = join(folder, "damaged.gguf");
  await writeFile(damaged, sound);
  await expect(load(damaged)).rejects.toMatchObject({
    code: "model_invalid",
    message: expect.stringContaining(damaged),
  });
});

test("a text that is longer than the model reads is refused, or cut before the token that ends it", async () => {
  const embedder = await load(await model.write(join(folder, "short.gguf"), "mean"));
  const long = "the cat ".repeat(40).trim();
  await expect(embedder.embed(["q", long])).rejects.toMatchObject({
    code: "context_length_exceeded",
    param: "input[1]",
  });
  const { vectors, tokenCount } = await embedder.embed(["q", long], { truncate: true });
  const whole = model.tokens(long);
  const cut = [...whole.slice(0, 63), whole.at(-1)!];
  expect(tokenCount).toBe(model.tokens("q").length + cut.length);
  const [short, expected] = (await embedder.embed(["q", Int32Array.from(cut)])).vectors;
  expect(vectors).toEqual([short, expected]);
  // Tokens are their sender's, who has the means to cut them.
  await expect(embedder.embed([Int32Array.from(whole)], { truncate: true })).rejects.toMatchObject({
    code: "context_length_exceeded",
  });
});

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return Array.from(a).reduce((sum, value, index) => sum + value * b[index]!, 0);
}
