import { describe, expect, it } from "vitest";
import { resolveOptions } from "../../../src/engine/options.ts";
import type { EngineOptions } from "../../../src/engine/types.ts";

const facts = { trainedContext: 32_768, physicalCores: 6 };
const resolve = (options: Partial<EngineOptions> = {}) =>
  resolveOptions({ modelPath: "m.gguf", ...options }, facts);

describe("resolveOptions", () => {
  it("has defaults for a CPU", () => {
    expect(resolve()).toEqual({
      modelPath: "m.gguf",
      contextSize: 8192,
      parallel: 4,
      retainedSlots: 4,
      cellsTotal: 65_536,
      cacheRamBytes: 0,
      cacheDiskBytes: 0,
      cacheDir: "",
      threads: 6,
      adaptThreads: true,
      gpuLayers: 0,
      kvLayout: "streams",
      flashAttention: "auto",
      cacheTypeK: "f16",
      cacheTypeV: "f16",
      deterministic: false,
      draftLimit: 0,
      stepTokenBudget: 512,
      targetItlMs: 250,
      microBatch: 512,
      holdLeaseMs: 600_000,
      maxQueue: 256,
      audit: false,
    });
  });

  it("has others for a GPU", () => {
    const gpu = { kvLayout: "unified", cellsTotal: 32_768 };
    expect(resolve({ gpuLayers: -1 })).toMatchObject(gpu);
    expect(resolve({ gpuLayers: 10 })).toMatchObject(gpu);
  });

  it("keeps files in a folder of the model's", () => {
    expect(
      resolve({ modelPath: "models/a.b.gguf", cacheDisk: 3, cacheDir: "/cache" }),
    ).toMatchObject({
      cacheDiskBytes: 3 * 2 ** 20,
      cacheDir: "/cache/a.b",
    });
    expect(() => resolve({ cacheDisk: 3 })).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "cacheDir" }),
    );
  });

  it("is deterministic in streams only", () => {
    const deterministic = { deterministic: true, kvLayout: "streams" };
    expect(resolve({ deterministic: true })).toMatchObject(deterministic);
    expect(resolve({ deterministic: true, gpuLayers: -1 })).toMatchObject(deterministic);
    expect(() => resolve({ deterministic: true, kvLayout: "unified" })).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "kvLayout" }),
    );
  });

  it("takes no more context than the model was trained for, unless told to", () => {
    const small = { trainedContext: 1024, physicalCores: 1 };
    const options = { modelPath: "m.gguf" };
    expect(resolveOptions(options, small).contextSize).toBe(1024);
    expect(resolveOptions({ ...options, contextSize: 4096 }, small).contextSize).toBe(4096);
  });

  describe("without --ctx-size", () => {
    // 2 (K, V) x 2 heads x 64 values x 2 bytes x 16 layers: 8 KiB a token and sequence, 64 KiB for eight.
    const shape = {
      layers: 16,
      heads: 8,
      keyValueHeads: 2,
      keyLength: 64,
      valueLength: 64,
      width: 512,
      feedForward: 2048,
      vocabulary: 1000,
    };
    const gib = 1024 ** 3;
    const contextOf = (
      availableBytes: number,
      trainedContext: number | undefined,
      options: Partial<EngineOptions> = {},
    ) =>
      resolveOptions(
        { modelPath: "m.gguf", ...options },
        {
          trainedContext,
          physicalCores: 1,
          memory: { availableBytes, weightBytes: gib, shape },
        },
      ).contextSize;

    it("has what the model was trained for, where a quarter of the free memory holds it", () => {
      expect(contextOf(9 * gib, 32_768)).toBe(32_768);
      expect(contextOf(100 * gib, 40_960)).toBe(40_960);
      expect(contextOf(100 * gib, 8192)).toBe(8192);
    });

    it("has a power of two less, where it does not", () => {
      expect(contextOf(8.9 * gib, 32_768)).toBe(16_384);
      expect(contextOf(5 * gib, 131_072)).toBe(16_384);
      expect(contextOf(5 * gib, 131_072, { parallel: 2 })).toBe(32_768);
      expect(contextOf(5 * gib, 131_072, { cacheTypeK: "q8_0", cacheTypeV: "q8_0" })).toBe(16_384);
    });

    it("has 8192 where the memory holds it at all, and less where it does not", () => {
      expect(contextOf(1.6 * gib, 131_072)).toBe(8192);
      expect(contextOf(1.3 * gib, 131_072)).toBe(4096);
      expect(contextOf(0.5 * gib, 131_072)).toBe(2048);
    });

    it("has 8192 where a GPU's memory is not known, or the model's training", () => {
      expect(contextOf(100 * gib, 131_072, { gpuLayers: -1 })).toBe(8192);
      expect(contextOf(100 * gib, undefined)).toBe(8192);
    });
  });

  it("keeps flash attention where quantized values need it", () => {
    expect(resolve({ cacheTypeV: "q8_0" }).flashAttention).toBe("auto");
    expect(resolve({ cacheTypeK: "q8_0", flashAttention: "off" }).flashAttention).toBe("off");
    expect(() => resolve({ cacheTypeV: "q4_0", flashAttention: "off" })).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "cacheTypeV" }),
    );
  });

  it.each<[keyof EngineOptions, number]>([
    ["contextSize", 1.5],
    ["contextSize", 0],
    ["parallel", 0],
    ["parallel", 257],
    ["parallel", 200],
    ["retainedSlots", -1],
    ["threads", 0],
    ["gpuLayers", -2],
    ["stepTokenBudget", 1],
    ["holdLeaseMs", Number.NaN],
    ["maxQueue", Number.POSITIVE_INFINITY],
  ])("refuses %s = %d", (param, value) => {
    expect(() => resolve({ [param]: value })).toThrow(
      expect.objectContaining({ code: "invalid_option", param }),
    );
  });
});
