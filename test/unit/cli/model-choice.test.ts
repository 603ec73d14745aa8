import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chooseModel, modelName, samplingOf } from "../../../src/cli/model-files.ts";

const directory = mkdtempSync(join(tmpdir(), "fermata-"));
writeFileSync(
  join(directory, "manifest.json"),
  JSON.stringify({
    default: "small.gguf",
    models: { "small.gguf": { sampling: { temperature: 0, unknown: 1 } } },
  }),
);

test("the bundled model, with the sampling of its manifest", () => {
  const path = chooseModel(undefined, directory);
  expect([path, modelName(path)]).toEqual([join(directory, "small.gguf"), "small"]);
  expect(samplingOf(path)).toMatchObject({ temperature: 0, topK: 40 });
  expect(samplingOf(path)).not.toHaveProperty("unknown");
});

test("a manifest counts wherever its model is named from", () => {
  const path = chooseModel(join(directory, "small.gguf"), "/nowhere");
  expect(samplingOf(path).temperature).toBe(0);
});

test("a model of one's own samples as others do", () => {
  const path = chooseModel("/models/Big-Q4.gguf", directory);
  expect(modelName(path)).toBe("Big-Q4");
  expect(samplingOf(path)).toMatchObject({ temperature: 0.7, topP: 0.95 });
});

test("what the file says of sampling counts, unless the manifest says something else", () => {
  const ofFile = { temperature: 0.6, topK: 20 };
  expect(samplingOf("/models/Big-Q4.gguf", ofFile)).toMatchObject({ ...ofFile, topP: 0.95 });
  const small = samplingOf(join(directory, "small.gguf"), ofFile);
  expect(small).toMatchObject({ temperature: 0, topK: 20 });
});

test("no model at all", () => {
  expect(() => chooseModel(undefined, "/nowhere")).toThrow(
    expect.objectContaining({ code: "model_not_found" }),
  );
});

test("a folder: its one model, split or not, or the one its manifest names", () => {
  const folder = (...names: string[]): string => {
    const path = mkdtempSync(join(tmpdir(), "fermata-"));
    for (const name of names) writeFileSync(join(path, name), "");
    return path;
  };
  const split = folder(
    "big-00002-of-00002.gguf",
    "big-00001-of-00002.gguf",
    "big-mmproj.gguf",
    "a.txt",
  );
  const path = chooseModel(split, "/nowhere");
  expect([path, modelName(path)]).toEqual([join(split, "big-00001-of-00002.gguf"), "big"]);
  expect(chooseModel(directory, "/nowhere")).toBe(join(directory, "small.gguf"));
  expect(() => chooseModel(folder("a.gguf", "b.gguf"), "/nowhere")).toThrow(/a\.gguf, b\.gguf/);
  expect(() => chooseModel(folder("a.txt"), "/nowhere")).toThrow(/has no GGUF file/);
});
