// Models that do not load: one clear error each, and the process lives on.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { loadTestEngine, modelPath } from "../support/engine.ts";

let folder: string;
let whole: Buffer;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-load-"));
  process.env["XDG_CACHE_HOME"] = folder;
  whole = readFileSync(modelPath);
});
afterAll(() => {
  delete process.env["XDG_CACHE_HOME"];
  rmSync(folder, { recursive: true });
});

function save(name: string, content: Buffer | string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The model with the bytes after `marker` replaced: the metadata value of a key, mostly. */
function altered(marker: string, change: (value: Buffer) => void): Buffer {
  const copy = Buffer.from(whole);
  const at = copy.indexOf(marker);
  expect(at).toBeGreaterThan(0);
  change(copy.subarray(at + marker.length));
  return copy;
}

describe("a file that cannot be loaded", () => {
  type Case = [name: string, path: () => string, code: string, message: RegExp];
  const cases: Case[] = [
    ["missing", () => join(folder, "none.gguf"), "model_not_found", /does not exist/],
    ["a directory", () => folder, "model_not_found", /is a directory/],
    ["empty", () => save("empty.gguf", ""), "model_invalid", /is empty/],
    ["no GGUF", () => save("text.gguf", "hello world, no model"), "model_invalid", /no GGUF/],
    [
      "cut in its header",
      () => save("header.gguf", whole.subarray(0, 5000)),
      "model_invalid",
      /claims|truncated/,
    ],
    [
      "cut in its weights",
      () => save("cut.gguf", whole.subarray(0, whole.length - 5000)),
      "model_invalid",
      /is truncated/,
    ],
    [
      "of an unknown architecture",
      () =>
        save(
          "arch.gguf",
          altered("general.architecture", (b) => b.write("zzzz", 12)),
        ),
      "model_invalid",
      /unknown model architecture/,
    ],
    [
      "with heads that do not fit",
      () =>
        save(
          "heads.gguf",
          altered("attention.head_count", (b) => b.writeUInt32LE(3, 4)),
        ),
      "model_invalid",
      /./,
    ],
    [
      "with no heads",
      () =>
        save(
          "zero.gguf",
          altered("attention.head_count", (b) => b.writeUInt32LE(0, 4)),
        ),
      "model_invalid",
      /./,
    ],
    [
      "with a rope wider than a head",
      () =>
        save(
          "rope.gguf",
          altered("rope.dimension_count", (b) => b.writeUInt32LE(6400, 4)),
        ),
      "model_invalid",
      /./,
    ],
    ...[-1, NaN].map((epsilon): Case => [
      `with norms whose epsilon is ${epsilon}`,
      () =>
        save(
          "epsilon.gguf",
          altered("attention.layer_norm_rms_epsilon", (b) => b.writeFloatLE(epsilon, 4)),
        ),
      "model_invalid",
      /epsilon of its norms/,
    ]),
    [
      "with an end token out of range",
      () =>
        save(
          "eos.gguf",
          altered("eos_token_id", (b) => b.writeUInt32LE(99_999_999, 4)),
        ),
      "model_invalid",
      /./,
    ],
  ];

  it.each(cases)("%s", async (_, path, code, message) => {
    const load = Engine.load({ modelPath: path(), contextSize: 256, threads: 1 });
    await expect(load).rejects.toMatchObject({
      name: "FermataError",
      code,
      message: expect.stringMatching(message),
    });
    await expect(load).rejects.not.toMatchObject({ message: expect.stringContaining("\n") });
  });
});

describe("options", () => {
  it("that need more memory than there is", async () => {
    const load = loadTestEngine({ contextSize: 2 ** 23, parallel: 64 });
    await expect(load).rejects.toMatchObject({ code: "out_of_memory" });
  });

  it("that make more cells than can be numbered", async () => {
    const load = loadTestEngine({ contextSize: 2 ** 24, parallel: 64 });
    await expect(load).rejects.toMatchObject({ code: "invalid_option", param: "contextSize" });
  });

  it("without the path of a model", async () => {
    const load = Engine.load({} as Parameters<typeof Engine.load>[0]);
    await expect(load).rejects.toMatchObject({ code: "invalid_option", param: "modelPath" });
  });

  it("that do not fit together", async () => {
    const load = loadTestEngine({ cacheTypeV: "q8_0", flashAttention: "off" });
    await expect(load).rejects.toMatchObject({ code: "invalid_option", param: "cacheTypeV" });
  });

  it.each(["streams", "unified"] as const)("that work: %s", async (kvLayout) => {
    const engine = await loadTestEngine({ kvLayout, flashAttention: "on", cacheTypeV: "q8_0" });
    expect(engine.cache).toMatchObject({ layout: kvLayout, slots: 4, cellsPerSequence: 2048 });
    await engine.close();
  });
});

describe("loading", () => {
  it("reports progress and can be given up", async () => {
    const fractions: number[] = [];
    const engine = await Engine.load(
      { modelPath, contextSize: 256 },
      { onProgress: (fraction) => fractions.push(fraction) },
    );
    await engine.close();
    expect(fractions.at(-1)).toBe(1);

    const controller = new AbortController();
    const load = Engine.load({ modelPath, contextSize: 256 }, { signal: controller.signal });
    controller.abort();
    await expect(load).rejects.toMatchObject({ code: "cancelled" });
  });

  it("probes a file once", async () => {
    const copy = join(folder, "copy.gguf");
    copyFileSync(modelPath, copy);
    const load = async (): Promise<void> => {
      const engine = await Engine.load({ modelPath: copy, contextSize: 256, threads: 1 });
      await engine.close();
    };
    /** What probes is a process of its own; without a program to start, none can. */
    const withoutProcesses = async (): Promise<void> => {
      const { execPath } = process;
      process.execPath = join(folder, "no-such-program");
      try {
        await load();
      } finally {
        process.execPath = execPath;
      }
    };
    await expect(withoutProcesses()).rejects.toMatchObject({ code: "model_invalid" });
    await load();
    await withoutProcesses();
  });
});
