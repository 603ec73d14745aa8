import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chooseModel } from "../../../src/cli/model-choice.ts";

const directory = mkdtempSync(join(tmpdir(), "fermata-"));
writeFileSync(
  join(directory, "manifest.json"),
  JSON.stringify({
    default: "small.gguf",
    models: { "small.gguf": { sampling: { temperature: 0, unknown: 1 } } },
  }),
);

test("the bundled model, with the sampling of its manifest", () => {
  const choice = chooseModel(undefined, directory);
  expect(choice).toMatchObject({
    path: join(directory, "small.gguf"),
    id: "small",
    sampling: { temperature: 0, topK: 40 },
  });
  expect(choice.sampling).not.toHaveProperty("unknown");
});

test("a manifest counts wherever its model is named from", () => {
  expect(chooseModel(join(directory, "small.gguf"), "/nowhere").sampling.temperature).toBe(0);
});

test("a model of one's own samples as others do", () => {
  expect(chooseModel("/models/Big-Q4.gguf", directory)).toMatchObject({
    id: "Big-Q4",
    sampling: { temperature: 0.7, topP: 0.95 },
  });
});

test("no model at all", () => {
  expect(() => chooseModel(undefined, "/nowhere")).toThrow(
    expect.objectContaining({ code: "model_not_found" }),
  );
});
