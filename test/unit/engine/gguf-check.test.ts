import fs, { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { checkGguf } from "../../../src/engine/gguf-check.ts";
import { FermataError } from "../../../src/errors.ts";
import { fakeGguf, soundMetadata, string, u32 } from "./gguf-builder.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-gguf-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function save(content: Buffer, name = "model.gguf"): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The error's code and its message without the path. */
function refusal(path: string): [code: string, message: string] {
  try {
    checkGguf(path);
  } catch (error) {
    if (!(error instanceof FermataError)) throw error;
    return [error.code, error.message.replaceAll(path, "PATH")];
  }
  return ["none", ""];
}

const without = (key: string) => {
  const { [key]: _, ...metadata } = soundMetadata();
  return { metadata };
};
const having = (key: string, value: ReturnType<typeof u32>) => ({
  metadata: { ...soundMetadata(), [key]: value },
});
const tensors = (...changes: Partial<ReturnType<typeof tensor>>[]) => ({
  tensors: changes.map((change, index) => ({ ...tensor(index), ...change })),
});
const tensor = (index: number) => ({ name: `t${index}`, shape: [8], type: 0, offset: 32 * index });

describe("checkGguf", () => {
  it("reads the header of a file of 32 GiB, not the file", () => {
    const path = save(fakeGguf({ ...tensors({ shape: [2 ** 33] }), tensorCount: 1 }), "large.gguf");
    truncateSync(path, 2 ** 35 + 2 ** 20);
    const read = vi.spyOn(fs, "readSync");
    syncBuiltinESMExports();
    try {
      expect(refusal(path)).toEqual(["none", ""]);
      const bytes = read.mock.results.reduce((sum, { value }) => sum + Number(value), 0);
      expect(bytes).toBeGreaterThan(0);
      expect(bytes).toBeLessThan(8 * 2 ** 20);
    } finally {
      read.mockRestore();
      syncBuiltinESMExports();
      rmSync(path);
    }
  });

  it("accepts a sound file", () => {
    const path = save(fakeGguf());
    const expected = {
      parts: [path],
      architecture: "llama",
      trainedContext: 2048,
      chatTemplate: "{{ messages }}",
    };
    expect(checkGguf(path)).toMatchObject({ ...expected, weightBytes: statSync(path).size });
    const base = save(fakeGguf(without("tokenizer.chat_template")), "base.gguf");
    expect(checkGguf(base).chatTemplate).toBeNull();
  });

  it("tells for how many positions there are weights", () => {
    expect(checkGguf(save(fakeGguf())).positions).toBeUndefined();
    const table = tensors({}, { name: "position_embd.weight", shape: [2, 4] });
    expect(checkGguf(save(fakeGguf(table), "positions.gguf")).positions).toBe(4);
  });

  it("reads how its makers draw from it", () => {
    const metadata = {
      ...soundMetadata(),
      "general.sampling.top_k": u32(20),
      "general.sampling.temp": string("hot"),
    };
    expect(checkGguf(save(fakeGguf({ metadata }), "drawn.gguf")).sampling).toEqual({ topK: 20 });
  });

  it.each<[string, Parameters<typeof fakeGguf>[0], string, RegExp]>([
    ["another magic", { magic: "GGML" }, "model_invalid", /no GGUF model/],
    ["version 1", { version: 1 }, "model_invalid", /version 1/],
    ["the other byte order", { version: 0x03000000 }, "model_invalid", /byte order/],
    ["too many tensors", { tensorCount: 2 ** 40 }, "model_invalid", /claims 5 metadata entries/],
    ["fewer tensors than counted", { tensorCount: 4 }, "model_invalid", /damaged|truncated/],
    ["no architecture", without("general.architecture"), "model_invalid", /no architecture/],
    ["no vocabulary", without("tokenizer.ggml.tokens"), "model_invalid", /no vocabulary/],
    [
      "an end token out of range",
      having("tokenizer.ggml.eos_token_id", u32(3)),
      "model_invalid",
      /eos_token_id is 3/,
    ],
    ["an odd alignment", having("general.alignment", u32(33)), "model_invalid", /power of two/],
    ["a projector", having("general.architecture", string("clip")), "model_invalid", /projector/],
    ["an adapter", having("general.type", string("adapter")), "model_invalid", /adapter/],
    ["a later part", having("split.count", u32(2)), "model_invalid", /give the first one/],
    ["no tensors", { tensorCount: 0, tensors: [] }, "model_invalid", /no weights/],
    [
      "an offset beyond the file",
      tensors({}, { offset: 2 ** 50 }),
      "model_invalid",
      /instead of 32/,
    ],
    ["overlapping tensors", tensors({}, { offset: 0 }), "model_invalid", /instead of 32/],
    ["a tensor name twice", tensors({ name: "x" }, { name: "x" }), "model_invalid", /proper name/],
    ["an unknown type", tensors({}, { type: 99 }), "model_invalid", /type 99/],
    ["half a block", tensors({}, { type: 8, shape: [33] }), "model_invalid", /shape 33/],
    [
      "a huge shape",
      tensors({}, { shape: [2 ** 40, 2 ** 40] }),
      "model_invalid",
      /cannot have shape/,
    ],
    ["five dimensions", tensors({}, { shape: [1, 1, 1, 1, 1] }), "model_invalid", /5 dimensions/],
    ["missing data", { dataBytes: 63 }, "model_invalid", /truncated/],
  ])("refuses %s", (_, changes, code, message) => {
    const [actualCode, actualMessage] = refusal(save(fakeGguf(changes)));
    expect(actualMessage).toMatch(message);
    expect(actualCode).toBe(code);
  });

  it("reads no text and no table that a model has no use for", () => {
    const long = fakeGguf(having("general.name", string("x")));
    long.writeBigUInt64LE(BigInt(2 ** 29), long.indexOf("general.name") + 16);
    const path = save(long, "long.gguf");
    truncateSync(path, 2 ** 30);
    expect(refusal(path)).toEqual([
      "model_invalid",
      "PATH is damaged: it holds a text of 536870912 bytes.",
    ]);
    const many = fakeGguf({ tensorCount: 2 ** 19 });
    const tables = save(many, "many.gguf");
    truncateSync(tables, 2 ** 24);
    expect(refusal(tables)[1]).toMatch(/claims 5 metadata entries and 524288 tensors/);
    many.writeBigUInt64LE(0n, 8);
    many.writeBigUInt64LE(2n ** 17n, 16);
    truncateSync(save(many, "many.gguf"), 2 ** 24);
    expect(refusal(tables)[1]).toMatch(/claims 131072 metadata entries/);
    rmSync(path);
    rmSync(tables);
  });

  it("shows little of a name that the file has, and nothing that a terminal obeys", () => {
    const name = `\u001b[31m\u009b${"x".repeat(5000)}`;
    const file = fakeGguf(having(name, u32(1)));
    const end = file.indexOf(name) + Buffer.byteLength(name);
    file.writeUInt32LE(99, end);
    const [, message] = refusal(save(file));
    expect(message).toBe(
      `PATH is damaged: the metadata entry ?[31m?${"x".repeat(57)} has type 99.`,
    );
  });

  it("refuses what is no file", () => {
    expect(refusal(join(folder, "none"))).toEqual([
      "model_not_found",
      "The model PATH does not exist; give the path of a .gguf file.",
    ]);
    expect(refusal(folder)[0]).toBe("model_not_found");
    expect(refusal(save(Buffer.alloc(0)))).toEqual(["model_invalid", "PATH is empty."]);
  });

  it("checks every part of a split model", () => {
    const { metadata } = having("split.count", u32(2));
    const first = save(
      fakeGguf({ metadata: { ...metadata, "split.no": u32(0) } }),
      "m-00001-of-00002.gguf",
    );
    expect(refusal(first)[0]).toBe("model_not_found");
    save(fakeGguf({ dataBytes: 10 }), "m-00002-of-00002.gguf");
    expect(refusal(first)[0]).toBe("model_invalid");
    save(fakeGguf(), "m-00002-of-00002.gguf");
    expect(refusal(first)[0]).toBe("none");
  });

  it("gives an error of the table for files cut and bytes changed anywhere", () => {
    const whole = fakeGguf();
    for (let length = 0; length < whole.length; length += 7) {
      expect(refusal(save(whole.subarray(0, length)))[0]).toMatch(/^model_/);
    }
    for (let at = 0; at < whole.length - 64; at += 3) {
      for (const value of [0x00, 0xff]) {
        const changed = Buffer.from(whole);
        changed[at] = value;
        expect(refusal(save(changed))[0]).toMatch(/^(none|model_\w+)$/);
      }
    }
  });
});
