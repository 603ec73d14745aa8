import { expect, test } from "vitest";
import { TurnMemories } from "../../../src/cli/load-models.ts";
import { fileOf } from "../../support/model-files.ts";

test("a model file keeps its turns, one that was replaced has none", () => {
  const memories = new TurnMemories();
  const file = fileOf("one");
  const turns = memories.of(file);
  expect(memories.of({ ...file })).toBe(turns);
  expect(memories.of({ ...file, created: 1 })).not.toBe(turns);
  expect(memories.of({ ...file, bytes: 2 })).not.toBe(turns);
});

test("those of the models that were used last are kept", () => {
  const memories = new TurnMemories();
  const [first, second] = [fileOf("first"), fileOf("second")].map((file) => memories.of(file));
  for (let other = 0; other < 14; other++) memories.of(fileOf(`other ${other}`));
  expect(memories.of(fileOf("first"))).toBe(first);
  memories.of(fileOf("one more"));
  expect(memories.of(fileOf("first"))).toBe(first);
  expect(memories.of(fileOf("second"))).not.toBe(second);
});
