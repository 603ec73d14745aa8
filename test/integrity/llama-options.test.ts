// llama.cpp's own options reach it: each shows an effect that a CPU can have.
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { EngineOptions, KvCacheType } from "../../src/engine/types.ts";
import { loadAddon } from "../../src/native/addon.ts";
import { collect, loadTestEngine, modelPath } from "../support/engine.ts";

const prompt = "The capital of France is Paris. The capital of Italy is";

async function withEngine<T>(
  options: Partial<EngineOptions>,
  use: (engine: Awaited<ReturnType<typeof loadTestEngine>>) => Promise<T> | T,
): Promise<T> {
  const engine = await loadTestEngine({ contextSize: 512, parallel: 1, ...options });
  try {
    return await use(engine);
  } finally {
    await engine.close();
  }
}

/** The first token's logarithm of its probability, by which small differences show. */
function firstLogprob(options: Partial<EngineOptions>): Promise<number> {
  return withEngine(options, async (engine) => {
    const tokens = await engine.tokenize(prompt);
    const generation = engine.generate({ prompt: tokens, maxTokens: 1, topLogprobs: 1 });
    for await (const event of generation)
      if (event.type === "text" && event.logprobs !== undefined) return event.logprobs[0]!.logprob;
    throw new RangeError("no token came");
  });
}

/** Bytes of 32 values. */
const blockBytes: Record<KvCacheType, number> = {
  f32: 128,
  f16: 64,
  bf16: 64,
  q8_0: 34,
  q5_1: 24,
  q5_0: 22,
  q4_1: 20,
  q4_0: 18,
  iq4_nl: 18,
};

it("each type of cached keys and values takes its own bytes and generates", async () => {
  const cells = await withEngine({}, (engine) => engine.cache.bytes / blockBytes.f16);
  for (const [type, bytes] of Object.entries(blockBytes)) {
    const cacheTypeK = type as KvCacheType;
    await withEngine({ cacheTypeK, cacheTypeV: cacheTypeK }, async (engine) => {
      expect([type, engine.cache.bytes]).toEqual([type, cells * bytes]);
      const tokens = await engine.tokenize(prompt);
      const { finish } = await collect(engine.generate({ prompt: tokens, maxTokens: 4 }));
      expect(finish.usage.generatedTokens).toBeGreaterThan(0);
    });
  }
});

it("RoPE's scaling and YaRN's factors change what is computed", async () => {
  const scaled = { ropeFreqScale: 0.25 };
  const yarn = { ropeScaling: "yarn", yarnOrigCtx: 256, ...scaled } as const;
  const ways = {
    plain: {},
    base: { ropeFreqBase: 5000 },
    linear: { ropeScaling: "linear", ...scaled },
    yarn,
    corrected: { ...yarn, yarnBetaFast: 4 },
    slower: { ...yarn, yarnBetaSlow: 3 },
    original: { ...yarn, yarnOrigCtx: 64 },
    interpolated: { ...yarn, yarnExtFactor: 0 },
    stronger: { ...yarn, yarnExtFactor: 0, yarnAttnFactor: 2 },
  } as const;
  const found: Record<string, number> = {};
  for (const [name, llama] of Object.entries(ways)) found[name] = await firstLogprob({ llama });
  // YaRN without extrapolation is what linear scaling is.
  expect(found["interpolated"]).toBe(found["linear"]);
  const different = new Set(Object.values(found).map((value) => value.toFixed(5)));
  expect([...different]).toHaveLength(Object.keys(ways).length - 1);
  expect(await firstLogprob({ llama: {} })).toBe(found["plain"]);
});

it("the sizes of batches decide how many decodes and passes a prompt takes", async () => {
  const counts = (options: Partial<EngineOptions>) =>
    withEngine(options, async (engine) => {
      const tokens = new Int32Array(256).fill((await engine.tokenize("word")).at(-1)!);
      await collect(engine.generate({ prompt: tokens, maxTokens: 1 }));
      const { steps, microBatches } = engine.stats();
      return [steps, microBatches];
    });
  expect(await counts({})).toEqual([1, 1]);
  expect(await counts({ microBatch: 64 })).toEqual([1, 4]);
  expect(await counts({ stepTokenBudget: 64 })).toEqual([4, 4]);
});

it.runIf(existsSync("/proc/self/maps"))(
  "--no-mmap reads the file instead of mapping it",
  async () => {
    const isMapped = () => readFileSync("/proc/self/maps", "utf8").includes(modelPath);
    expect(await withEngine({}, isMapped)).toBe(true);
    expect(await withEngine({ llama: { mmap: false } }, isMapped)).toBe(false);
  },
);

// Under ASan and TSan mlock does nothing.
const isSanitized = "ASAN_OPTIONS" in process.env || "TSAN_OPTIONS" in process.env;
const canLock = existsSync("/proc/self/status") && !isSanitized;
it.runIf(canLock)("--mlock locks the weights", async () => {
  const locked = () =>
    Number(/VmLck:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0);
  const before = locked();
  expect(await withEngine({ llama: { mlock: true } }, locked)).toBeGreaterThan(before);
});

it("a pattern that names the CPU's buffers is taken", async () => {
  const overrideTensor = [{ pattern: String.raw`\.ffn_(up|down)`, buffer: "CPU" }];
  // Where the others are on a device, which rounds otherwise, as far as test/device allows.
  const digits = loadAddon().devices().length === 0 ? 3 : 1;
  const whole = await firstLogprob({});
  expect(await firstLogprob({ llama: { overrideTensor } })).toBeCloseTo(whole, digits);
});

it.each([
  [{ devices: ["Nonsense7"] }, /no Nonsense7.*none/u],
  [{ overrideTensor: [{ pattern: "exps", buffer: "Nonsense" }] }, /no buffer type Nonsense.*CPU/u],
  [{ overrideTensor: [{ pattern: "(", buffer: "CPU" }] }, /regular expression/u],
  [{ mainGpu: 60 }, /no device 60/u],
  [{ splitMode: "row" }, /row and tensor need two devices.*none, layer/u],
  [{ tensorSplit: Array.from({ length: 65 }, () => 1) }, /65 shares/u],
  [{ ropeFreqBase: -1 }, /ropeFreqBase/u],
] as const)("%j is refused with what is possible", async (llama, message) => {
  await expect(withEngine({ llama: llama as EngineOptions["llama"] }, () => 0)).rejects.toThrow(
    expect.objectContaining({ code: "invalid_option", message: expect.stringMatching(message) }),
  );
});
