// A model's own MTP layers draft: the same tokens, whatever was shared, held, moved and read from files.
import { describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { fitModel } from "../../src/engine/load.ts";
import type { EngineOptions, Sampling } from "../../src/engine/types.ts";
import { collect, holdAtEnd, modelPath as ordinary, readUntil, words } from "../support/engine.ts";
import { mtpKinds, writeMtpModel } from "../support/mtp-models.ts";
import { greedy } from "../support/sampling.ts";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const shared = words(1, 100);
const promptOf = (seed: number): number[] => [...shared, ...words(seed, 30)];
const marks = Int32Array.of(shared.length);
const drawn: Sampling = { ...greedy, temperature: 0.8, topK: 40, seed: 5 };

const load = (options: Partial<EngineOptions> & { modelPath: string }): Promise<Engine> =>
  Engine.load({ contextSize: 1024, parallel: 2, threads: 1, audit: true, ...options });

async function answer(engine: Engine, prompt: number[], sampling: Sampling): Promise<number[]> {
  const generation = engine.generate({
    prompt: Int32Array.from(prompt),
    sampling: { ...sampling, ignoresEnd: true },
    maxTokens: 60,
    marks,
  });
  await collect(generation);
  return [...generation.tokens];
}

/** Answers beside each other, one of which is held meanwhile, and then what goes on with each. */
async function run(engine: Engine, sampling: Sampling): Promise<number[][]> {
  const [end] = await engine.tokenize("<|im_end|>");
  const held = engine.generate({
    prompt: Int32Array.from(promptOf(2)),
    marks,
    sampling: {
      ...sampling,
      script: Int32Array.from([...words(3, 9), end!]),
      samplesAfterScript: true,
    },
    pause: holdAtEnd,
  });
  await readUntil(held, "hold");
  const firsts = await Promise.all(
    [4, 5, 6].map((seed) => answer(engine, promptOf(seed), sampling)),
  );
  held.resume({ tokens: Int32Array.from(words(7, 20)), keepPending: true, maxTokens: 60 });
  for await (const event of held) if (event.type === "hold") held.release();
  const seconds = await Promise.all(
    firsts.map((tokens) => answer(engine, [...tokens, ...words(8, 10)], sampling)),
  );
  return [...firsts, ...seconds, [...held.tokens]];
}

describe.each(mtpKinds)("%s", (kind) => {
  const modelPath = writeMtpModel(kind);

  it.each([
    ["greedy", "streams", greedy],
    ["greedy", "unified", greedy],
    ["drawn", "streams", drawn],
    ["drawn", "unified", drawn],
  ] as const)("says the same with them: %s, %s", async (_name, kvLayout, sampling) => {
    // A slot for each that runs: the others are in memory.
    const options = { modelPath, kvLayout, retainedSlots: 0 };
    const plain = await load(options);
    const expected = await run(plain, sampling);
    expect(plain.stats()).toMatchObject({ draftedRows: 0, draftModelRows: 0 });
    await plain.close();
    // Whether the layers are asked depends on what the first steps take.
    let accepted = 0;
    for (let times = 0; times < 10 && accepted === 0; times++) {
      const drafting = await load({ ...options, draftMtp: true });
      expect(await run(drafting, sampling)).toEqual(expected);
      const { acceptedRows, draftModelRows, ramRestores } = drafting.stats();
      if (draftModelRows > 0) accepted += acceptedRows;
      expect(ramRestores).toBeGreaterThan(0);
      expect(await drafting.checkIntegrity()).toBe("");
      await drafting.close();
    }
    expect(accepted).toBeGreaterThan(0);
  });

  it("goes on with what an earlier process wrote to files", async () => {
    const plain = await load({ modelPath });
    const first = await answer(plain, promptOf(2), greedy);
    const next = [...first, ...words(8, 10)];
    const second = await answer(plain, next, greedy);
    await plain.close();
    const options = {
      modelPath,
      draftMtp: true,
      cacheDisk: 256,
      cacheDir: mkdtempSync(join(tmpdir(), "fermata-mtp-")),
    };
    const before = await load(options);
    expect(await answer(before, promptOf(2), greedy)).toEqual(first);
    await before.close();
    const after = await load(options);
    expect(await answer(after, next, greedy)).toEqual(second);
    expect(after.stats().cachedTokens).toBeGreaterThan(0);
    await after.close();
  });

  it.each([16, 128])("a file that says that their states have %i numbers", async (width) => {
    const damaged = writeMtpModel(kind, { embedding_length_out: width });
    await expect(load({ modelPath: damaged, draftMtp: true })).rejects.toMatchObject({
      code: "model_invalid",
      message: expect.stringContaining("another width"),
    });
  });

  it("counts their cache, and what they start from", async () => {
    const options = { modelPath, contextSize: 1024, parallel: 2, retainedSlots: 2 };
    const hostOf = async (draftMtp: boolean) =>
      (await fitModel({ ...options, draftMtp, drafts: true })).needs.host;
    const [without, with_] = [await hostOf(false), await hostOf(true)];
    const cells = 4 * 1024;
    // Keys and values of two heads, and a vector as wide as the model, two bytes a number.
    expect(with_.cache - without.cache).toBe(cells * (2 * 2 * 16 + 64) * 2);
    expect(with_.compute).toBeGreaterThan(without.compute);
    // The layer is loaded once.
    const layer = with_.weights - without.weights;
    expect(layer).toBeGreaterThan(0);
    expect(layer).toBeLessThan(2 ** 20);
  });
});

it("are asked for where there are none", async () => {
  await expect(load({ modelPath: ordinary, draftMtp: true })).rejects.toMatchObject({
    code: "invalid_option",
    param: "draftMtp",
    message: expect.stringMatching(/^draftMtp is for models with MTP layers/u),
  });
});
