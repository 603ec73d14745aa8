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
      llama: {},
      kvLayout: "streams",
      flashAttention: "auto",
      cacheTypeK: "f16",
      cacheTypeV: "f16",
      deterministic: false,
      draftLimit: 15,
      draftsAnywhere: false,
      draftMtp: false,
      stepTokenBudget: 512,
      targetItlMs: 250,
      elasticTarget: true,
      microBatch: 512,
      holdLeaseMs: 600_000,
      maxQueue: 256,
      audit: false,
    });
  });

  it("gives a draft model what the model has, and no longer texts than it was trained for", () => {
    const draftModel = "small.gguf";
    const { draftLimit, draftModel: resolved } = resolve({ draftModel });
    expect({ draftLimit, resolved }).toEqual({
      draftLimit: 15,
      resolved: { modelPath: draftModel, gpuLayers: 0, contextSize: 2 ** 24 },
    });
    expect(resolve({ draftModel, gpuLayers: 7 }).draftModel?.gpuLayers).toBe(-1);
    const short = { ...facts, draftContext: 2048 };
    expect(resolveOptions({ modelPath: "m.gguf", draftModel }, short).draftModel?.contextSize).toBe(
      2048,
    );
    expect(resolve({ draftModel }).draftsAnywhere).toBe(true);
    expect(resolve({ drafts: true })).toMatchObject({ draftLimit: 15, draftsAnywhere: true });
    expect(resolve({ drafts: false })).toMatchObject({ draftLimit: 0, draftsAnywhere: false });
    expect(() => resolve({ draftModel, deterministic: true })).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "draftModel" }),
    );
  });

  it("drafts with the model's own MTP layers, and with nothing beside them", () => {
    expect(resolve({ draftMtp: true })).toMatchObject({ draftLimit: 15, draftMtp: true });
    expect(resolve({})).toMatchObject({ draftsAnywhere: false, draftMtp: false });
    for (const other of [{ deterministic: true }, { draftModel: "small.gguf" }])
      expect(() => resolve({ draftMtp: true, ...other })).toThrow(
        expect.objectContaining({ code: "invalid_option", param: "draftMtp" }),
      );
  });

  it("has others for a GPU", () => {
    const gpu = { kvLayout: "unified", cellsTotal: 32_768 };
    expect(resolve({ gpuLayers: -1 })).toMatchObject(gpu);
    expect(resolve({ gpuLayers: 10 })).toMatchObject(gpu);
  });

  it("keeps files in a folder of the model's", () => {
    const resolved = (modelPath: string) =>
      resolve({ modelPath, cacheDisk: 3, cacheDir: "/cache" });
    const { cacheDiskBytes, cacheDir } = resolved("models/a.b.gguf");
    expect(cacheDiskBytes).toBe(3 * 2 ** 20);
    expect(cacheDir).toMatch(/^\/cache\/a\.b-[0-9a-f]{8}$/);
    // However its path is written, and whatever other folders have.
    expect(resolved("./models/../models/a.b.gguf").cacheDir).toBe(cacheDir);
    expect(resolved("others/a.b.gguf").cacheDir).not.toBe(cacheDir);
    expect(() => resolve({ cacheDisk: 3 })).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "cacheDir" }),
    );
  });

  it("reads the address of a Redis server", () => {
    const read = (cacheRemote: string) => resolve({ cacheDisk: 3, cacheRemote }).cacheRemote;
    const plain = { host: "r", port: 6379, user: "", password: "", database: 0 };
    expect(read("redis://r")).toEqual(plain);
    expect(read("valkey://r/")).toEqual(plain);
    expect(read("redis://u:p%40s@[::1]:7000/12")).toEqual({
      host: "::1",
      port: 7000,
      user: "u",
      password: "p@s",
      database: 12,
    });
    const wrong = ["r:6379", "http://r", "redis://", "redis://r/zero", "redis://r?ttl=1"];
    for (const text of [...wrong, "rediss://u:secret@r", "redis://u:secret%@r"])
      expect(() => read(text)).toThrow(
        expect.objectContaining({
          code: "invalid_option",
          param: "cacheRemote",
          message: expect.not.stringContaining("secret"),
        }),
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

  it("takes no more context than there are positions with weights, in whole blocks", () => {
    const learned = { trainedContext: 2048, positions: 1000, physicalCores: 1 };
    const options = { modelPath: "m.gguf" };
    expect(resolveOptions(options, learned).contextSize).toBe(768);
    expect(resolveOptions({ ...options, contextSize: 768 }, learned).contextSize).toBe(768);
    expect(() => resolveOptions({ ...options, contextSize: 769 }, learned)).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "contextSize" }),
    );
    const untold = { ...learned, trainedContext: undefined };
    expect(resolveOptions(options, untold).contextSize).toBe(768);
    const less = { ...learned, trainedContext: 512 };
    expect(resolveOptions(options, less).contextSize).toBe(512);
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
