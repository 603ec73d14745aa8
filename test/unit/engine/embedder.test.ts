/** Who waits for whom; the vectors are the addon's, and tested with models. */

import { expect, test } from "vitest";
import { Embedder } from "../../../src/engine/embedder.ts";

/** A vector is its first token; `embed` waits to be let on. */
function createWorld() {
  const asked: number[] = [];
  let atWork = 0;
  let most = 0;
  let letOn: () => void = () => {};
  const native = {
    dimensions: 1,
    maxTokens: 10,
    vocabularySize: 100,
    tokenizePairs: async () => [],
    tokenize: async (texts: string[]) => texts.map((text) => Int32Array.of(text.length)),
    embed: async (lists: Int32Array[]) => {
      most = Math.max(most, ++atWork);
      asked.push(...lists.map((list) => list[0]!));
      await new Promise<void>((resolve) => (letOn = resolve));
      atWork -= 1;
      return lists.map((list) => Float32Array.from(list));
    },
  };
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const next = async (): Promise<void> => {
    await settle();
    letOn();
    await settle();
  };
  return { embedder: new Embedder(native), asked, next, most: () => most };
}

test("one text at a time, of each request in turn", async () => {
  const { embedder, asked, next, most } = createWorld();
  const first = embedder.embed([Int32Array.of(1), Int32Array.of(2), Int32Array.of(3)]);
  const second = embedder.embed(["four", Int32Array.of(5)]);
  for (let count = 0; count < 5; count++) await next();
  expect((await first).vectors.map(([value]) => value)).toEqual([1, 2, 3]);
  expect(await second).toEqual({
    vectors: [Float32Array.of(4), Float32Array.of(5)],
    tokenCount: 2,
  });
  expect(asked.toSorted()).toEqual([1, 2, 3, 4, 5]);
  expect(asked).not.toEqual([1, 2, 3, 4, 5]);
  expect(most()).toBe(1);
});

test("whoever leaves is worked for no longer, and holds nobody up", async () => {
  const { embedder, asked, next } = createWorld();
  const leave = new AbortController();
  const gone = embedder.embed(
    [1, 2, 3].map((token) => Int32Array.of(token)),
    { signal: leave.signal },
  );
  await next();
  leave.abort(new TypeError("gone"));
  const refused = expect(gone).rejects.toThrow("gone");
  await next();
  await refused;
  const stays = embedder.embed([Int32Array.of(7)]);
  await next();
  expect((await stays).vectors).toEqual([Float32Array.of(7)]);
  expect(asked).not.toContain(3);
});

test("so many may wait, and no more", async () => {
  const { embedder, next } = createWorld();
  const waiting = Array.from({ length: 64 }, () => embedder.embed([Int32Array.of(1)]));
  await expect(embedder.embed([Int32Array.of(1)])).rejects.toMatchObject({ code: "queue_full" });
  for (let count = 0; count < 64; count++) await next();
  await Promise.all(waiting);
  const again = embedder.embed([Int32Array.of(2)]);
  await next();
  expect((await again).tokenCount).toBe(1);
});
