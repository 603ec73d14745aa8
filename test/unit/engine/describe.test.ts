import { expect, test } from "vitest";
import { describe } from "../../../src/engine/engine.ts";

test.each([
  ["llama 256M Q4_1", 134_515_008, "llama 134.5M Q4_1"],
  ["qwen2 ?B F16", 4_858_624, "qwen2 4.9M F16"],
  ["llama 8B Q4_K - Medium", 8_030_261_248, "llama 8B Q4_K - Medium"],
  ["qwen2 1.5B Q4_K - Medium", 1_543_714_304, "qwen2 1.5B Q4_K - Medium"],
  ["qwen3moe 30B.A3B Q4_K - Medium", 30_532_122_624, "qwen3moe 30B.A3B Q4_K - Medium"],
  ["llama 8x7B Q4_0", 46_702_792_704, "llama 8x7B Q4_0"],
])("a model's size is counted: %s", (description, parameterCount, wanted) => {
  expect(describe({ description, parameterCount })).toBe(wanted);
});
