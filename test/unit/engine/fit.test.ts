// The machine is a fake: its devices and its model's needs are what the tests say.
import { describe, expect, it } from "vitest";
import { fitOptions } from "../../../src/engine/fit.ts";
import type { EngineOptions } from "../../../src/engine/types.ts";
import type { NativeLoadOptions, NativeMemoryNeeds } from "../../../src/native/addon-types.ts";

const gib = 2 ** 30;
/** Of a token in the cache of 8 or, in a pool, 4 sequences. */
const cellBytes = 8192;
const layers = 16;

/** 1 GiB of weights in 16 layers and the output, 8 KiB a cell. */
function needsOf(resolved: NativeLoadOptions, size: number): NativeMemoryNeeds {
  const { gpuLayers, kvLayout, parallel, retainedSlots } = resolved;
  const sequences = kvLayout === "streams" ? parallel + retainedSlots : parallel;
  const share = (gpuLayers < 0 ? layers + 1 : Math.min(gpuLayers, layers + 1)) / (layers + 1);
  const part = (fraction: number) => ({
    weights: fraction * gib,
    cache: fraction * size * sequences * cellBytes,
    compute: 0,
  });
  return {
    host: part(1 - share),
    devices: share === 0 ? [] : [{ name: "GPU0", ...part(share) }],
  };
}

interface Given {
  availableBytes: number;
  deviceBytes?: number;
  trainedContext?: number | undefined;
}

async function fit(given: Given, options: Partial<EngineOptions> = {}) {
  const { availableBytes, deviceBytes, trainedContext } = given;
  const model = {
    parts: ["m.gguf"] as const,
    architecture: "fake",
    trainedContext,
    positions: undefined,
    layers,
    mtpLayers: 0,
    weightBytes: gib,
    chatTemplate: null,
    fileType: null,
    readsOnly: false,
    ranks: false,
    sampling: {},
  };
  const device = { name: "GPU0", description: "a fake", totalBytes: 0 };
  const machine = {
    availableBytes,
    measure: (resolved: NativeLoadOptions, sizes: number[]) =>
      Promise.resolve(sizes.map((size) => needsOf(resolved, size))),
    devices: () => (deviceBytes === undefined ? [] : [{ ...device, freeBytes: deviceBytes }]),
  };
  const { resolved } = await fitOptions({ modelPath: "m.gguf", ...options }, model, machine);
  return resolved;
}

describe("the context without --ctx-size", () => {
  const contextOf = async (
    availableBytes: number,
    trainedContext: number | undefined,
    options: Partial<EngineOptions> = {},
  ) => (await fit({ availableBytes, trainedContext }, options)).contextSize;

  it("has what the model was trained for, where a quarter of the free memory holds it", async () => {
    expect(await contextOf(9 * gib, 32_768)).toBe(32_768);
    expect(await contextOf(100 * gib, 40_960)).toBe(40_960);
    expect(await contextOf(100 * gib, 8192)).toBe(8192);
  });

  it("has a power of two less, where it does not", async () => {
    expect(await contextOf(8.9 * gib, 32_768)).toBe(16_384);
    expect(await contextOf(5 * gib, 131_072)).toBe(16_384);
    expect(await contextOf(5 * gib, 131_072, { parallel: 2 })).toBe(32_768);
  });

  it("has 8192 where the memory holds it at all, and less where it does not", async () => {
    expect(await contextOf(1.6 * gib, 131_072)).toBe(8192);
    expect(await contextOf(1.3 * gib, 131_072)).toBe(4096);
    expect(await contextOf(0.5 * gib, 131_072)).toBe(2048);
  });

  it("has 8192 where the model's training is not known, and what is given in any case", async () => {
    expect(await contextOf(100 * gib, undefined)).toBe(8192);
    expect(await contextOf(0.5 * gib, 4096, { contextSize: 100_000 })).toBe(100_000);
  });
});

describe("layers on a device", () => {
  const layersOf = async (deviceBytes: number, options: Partial<EngineOptions> = {}) => {
    const { gpuLayers, kvLayout } = await fit(
      { availableBytes: 16 * gib, deviceBytes, trainedContext: 8192 },
      options,
    );
    return [gpuLayers, kvLayout];
  };

  it("are all where the device has room for them and the cache, and 512 MiB more", async () => {
    expect(await layersOf(1.75 * gib)).toEqual([-1, "unified"]);
    // 17 parts of 1.25 GiB: 16 of them and the margin are less than this.
    expect(await layersOf(1.72 * gib)).toEqual([16, "unified"]);
  });

  it("are as many as fit, and none where none does", async () => {
    expect(await layersOf(1.13 * gib)).toEqual([8, "unified"]);
    expect(await layersOf(0.5 * gib)).toEqual([0, "streams"]);
    expect(await layersOf(0)).toEqual([0, "streams"]);
  });

  it("are as many as were asked for, and none without a device that may have them", async () => {
    expect(await layersOf(9 * gib, { gpuLayers: 3 })).toEqual([3, "unified"]);
    const devices = ["none"];
    expect(await layersOf(9 * gib, { llama: { devices } })).toEqual([0, "streams"]);
  });

  it("are refused by name where there is no device, and none of them is none", async () => {
    const refused = (message: RegExp) =>
      expect.objectContaining({
        code: "invalid_option",
        param: "gpuLayers",
        message: expect.stringMatching(message),
      });
    const without = { availableBytes: 16 * gib, trainedContext: 8192 };
    await expect(fit(without, { gpuLayers: 3 })).rejects.toThrow(refused(/3 layers.*no device/u));
    await expect(
      layersOf(9 * gib, { gpuLayers: -1, llama: { devices: ["none"] } }),
    ).rejects.toThrow(refused(/all layers.*chosen \(none\) are none/u));
    expect((await fit(without, { gpuLayers: 0 })).gpuLayers).toBe(0);
  });
});

it("sequences without a slot have a quarter of what weights and slots leave, 8 GiB at most", async () => {
  const ramOf = async (availableBytes: number, options: Partial<EngineOptions> = {}) =>
    (await fit({ availableBytes, trainedContext: 8192 }, options)).cacheRamBytes / gib;
  expect(await ramOf(3.5 * gib)).toBe(0.5);
  expect(await ramOf(99 * gib)).toBe(8);
  expect(await ramOf(0.5 * gib)).toBe(0);
  expect(await ramOf(99 * gib, { cacheRam: 1024 })).toBe(1);
});

it("a cache too large to be measured is measured by two smaller ones", async () => {
  const asked: number[][] = [];
  const { needs } = await fitOptions(
    { modelPath: "m.gguf", contextSize: 2 ** 23, parallel: 64, retainedSlots: 64 },
    {
      parts: ["m.gguf"],
      architecture: "fake",
      trainedContext: 4096,
      positions: undefined,
      layers,
      mtpLayers: 0,
      weightBytes: 0,
      chatTemplate: null,
      fileType: null,
      readsOnly: false,
      ranks: false,
      sampling: {},
    },
    {
      availableBytes: gib,
      devices: () => [],
      measure: (resolved, sizes) => {
        asked.push(sizes);
        return Promise.resolve(sizes.map((size) => needsOf(resolved, size)));
      },
    },
  );
  expect(asked).toEqual([[4096, 8192]]);
  expect(needs.host).toEqual({ weights: gib, cache: 2 ** 23 * 128 * cellBytes, compute: 0 });
});
