// What differs on a device: layers, cache and their bytes are there, and keys and values come back from host memory
// and files. By `npm run test:vulkan`, which also runs the lanes that any engine passes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions, GenerateRequest } from "../../src/engine/types.ts";
import { loadAddon } from "../../src/native/addon.ts";
import { collect, holdAtEnd, loadTestEngine, readUntil, scripted } from "../support/engine.ts";
import { greedy } from "../support/sampling.ts";

const text = (topic: string): string =>
  `<|im_start|>system\nYou answer in one short sentence about ${topic}. ${"You name your sources. ".repeat(12)}<|im_end|>\n` +
  `<|im_start|>user\nWhat is new of ${topic}?<|im_end|>\n<|im_start|>assistant\n`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-device-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(engine: Engine, topic: string, request: Partial<GenerateRequest> = {}) {
  const prompt = await engine.tokenize(text(topic));
  const options = { sampling: { ...greedy, ignoresEnd: true }, maxTokens: 16, ...request };
  const { tokens, finish } = await collect(engine.generate({ prompt, ...options }));
  return { tokens, usage: finish.usage, prompt };
}

async function closeSound(engine: Engine): Promise<void> {
  expect(await engine.checkIntegrity()).toBe("");
  await engine.close();
}

it("the build has a device, and takes it by itself", async () => {
  const { backend, deviceProblem, devices } = loadAddon();
  expect(backend).not.toBe("cpu");
  expect([devices().length > 0, deviceProblem]).toEqual([true, ""]);
  const engine = await loadTestEngine({ kvLayout: "auto" });
  expect(engine.deviceUse.layers).toBe(-1);
  expect(engine.cache.layout).toBe("unified");
  await closeSound(engine);
});

describe.each(["streams", "unified"] as const)("%s", (kvLayout) => {
  const load = (options: Partial<EngineOptions> = {}) =>
    loadTestEngine({ kvLayout, gpuLayers: -1, parallel: 1, retainedSlots: 0, ...options });

  it("layers that are put on it take their bytes there, as the fit counted them", async () => {
    const [none, half, all] = [
      await load({ gpuLayers: 0 }),
      await load({ gpuLayers: 2 }),
      await load(),
    ];
    const bytesOf = ({ deviceUse }: Engine) =>
      deviceUse.devices.reduce((sum, { bytes }) => sum + bytes, 0);
    // The cache of all layers, and the weights without the table of tokens at least.
    expect(bytesOf(all)).toBeGreaterThan(all.cache.bytes + all.model.sizeBytes / 4);
    expect(bytesOf(half)).toBeLessThan(bytesOf(all));
    expect(bytesOf(none)).toBeLessThan(bytesOf(half));
    for (const engine of [none, half, all]) await closeSound(engine);
  });

  it("computes the CPU's tokens, as far as rounding lets it", async () => {
    const [device, cpu] = [
      await load(),
      await load({ gpuLayers: 0, llama: { devices: ["none"] } }),
    ];
    const script = scripted(await cpu.tokenize(text("bridges").slice(0, 120)));
    const logprobs = async (engine: Engine): Promise<number[]> => {
      const prompt = await engine.tokenize(text("harbours"));
      const found: number[] = [];
      const request = { prompt, sampling: script, topLogprobs: 1 };
      for await (const event of engine.generate(request))
        if (event.type === "text") found.push(...(event.logprobs ?? []).map((one) => one.logprob));
      return found;
    };
    const [ours, theirs] = [await logprobs(device), await logprobs(cpu)];
    expect(ours.length).toBeGreaterThan(20);
    expect(ours).toHaveLength(theirs.length);
    for (const [at, value] of ours.entries()) expect(value).toBeCloseTo(theirs[at]!, 1);
    await closeSound(device);
    await closeSound(cpu);
  });

  it("goes on from host memory with the rows that it had", async () => {
    const engine = await load({ cacheRam: 64 });
    const first = await run(engine, "harbours");
    await run(engine, "markets");
    expect(engine.stats().ramSaves).toBeGreaterThan(0);
    const again = await run(engine, "harbours");
    expect(engine.stats().ramRestores).toBeGreaterThan(0);
    expect(again.usage.cachedTokens).toBe(first.prompt.length - 1);
    expect(again.tokens).toEqual(first.tokens);
    await closeSound(engine);
  });

  it("goes on from a file after a restart", async () => {
    const disk = { cacheRam: 64, cacheDisk: 64, cacheDir: join(folder, kvLayout) };
    const before = await load(disk);
    const first = await run(before, "bridges");
    await closeSound(before);
    const after = await load(disk);
    const again = await run(after, "bridges");
    expect(after.stats().diskRestores).toBe(1);
    expect(again.usage.cachedTokens).toBe(first.prompt.length - 1);
    expect(again.tokens).toEqual(first.tokens);
    await closeSound(after);
  });

  it("a hold that left for host memory resumes with its new rows", async () => {
    const engine = await load({ cacheRam: 64 });
    const prompt = await engine.tokenize(text("teachers"));
    const script = await engine.tokenize("Let me look that up for you.");
    const held = engine.generate({ prompt, sampling: scripted(script), pause: holdAtEnd });
    await readUntil(held, "hold");
    await run(engine, "trains");
    const result = await engine.tokenize("<|im_start|>user\n18 degrees<|im_end|>\n");
    held.resume({ tokens: result, keepPending: true, maxTokens: 8 });
    const { usage } = await readUntil(held, "hold");
    expect(usage).toMatchObject({ resumedTokens: result.length + 1, recomputedTokens: 0 });
    held.release();
    await collect(held);
    await closeSound(engine);
  });

  it("eight agents: each of ten rounds computes what is new and nothing twice", async () => {
    const engine = await load({ parallel: 8, retainedSlots: 8, contextSize: 2048 });
    const rounds = 10;
    const agent = async (number: number): Promise<void> => {
      const prompt = await engine.tokenize(text(`topic ${number}`));
      const script = await engine.tokenize(`Let me look at number ${number}.`);
      const sampling = { ...greedy, script };
      const generation = engine.generate({ prompt, sampling, pause: holdAtEnd });
      for (let round = 1; round <= rounds; round++) {
        await readUntil(generation, "hold");
        const result = await engine.tokenize(
          `\nresult ${round} of ${number}: ${"rain ".repeat(round)}`,
        );
        generation.resume({ tokens: result, keepPending: true, maxTokens: 8 });
      }
      const { usage } = await readUntil(generation, "hold");
      expect(usage.recomputedTokens).toBe(0);
      generation.release();
      await collect(generation);
    };
    await Promise.all(Array.from({ length: 8 }, (_, number) => agent(number)));
    const { promptTokens, cachedTokens, resumedTokens, prefilledTokens } = engine.stats();
    expect(prefilledTokens).toBe(promptTokens - cachedTokens + resumedTokens);
    expect(engine.stats().running).toBe(0);
    await closeSound(engine);
  });
});
