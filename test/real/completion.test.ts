// A real model loads and continues a sentence that all of them know.
import { describe, expect, test } from "vitest";
import { collect, loadTestEngine } from "../support/engine.ts";
import { realModelPath } from "../support/real-models.ts";
import { greedy } from "../support/sampling.ts";

for (const name of ["smollm2", "qwen2.5-coder"] as const) {
  const modelPath = realModelPath(name);
  describe.skipIf(modelPath === undefined)(name, () => {
    test("knows the capital of France", async () => {
      const engine = await loadTestEngine({ modelPath: modelPath!, threads: 2, audit: false });
      try {
        const prompt = await engine.tokenize("The capital of France is", "", true);
        const { text } = await collect(
          engine.generate({ prompt, sampling: greedy, maxTokens: 12 }),
        );
        expect(text).toContain("Paris");
      } finally {
        await engine.close();
      }
    });
  });
}
