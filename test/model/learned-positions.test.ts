// A model with learned positions ends the process at a row behind the last one: its context ends before.
import { expect, test } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { collect } from "../support/engine.ts";
import { writeRandomKind } from "../support/random-kinds.ts";
import { greedy } from "../support/sampling.ts";

// It has 600 positions; llama.cpp's blocks have 256 cells.
const modelPath = writeRandomKind("gpt2");
const load = (contextSize?: number): Promise<Engine> =>
  Engine.load({ modelPath, threads: 1, parallel: 1, contextSize });

test("its context is as long as its weights reach, and a full one ends the answer", async () => {
  const engine = await load();
  expect(engine.cache.cellsPerSequence).toBe(512);
  const prompt = Int32Array.from({ length: 500 }, (_, at) => 300 + ((at * 7919) % 3000));
  const sampling = { ...greedy, ignoresEnd: true };
  const generation = engine.generate({ prompt, sampling, maxTokens: 100 });
  const { finish, tokens } = await collect(generation);
  expect(finish.reason).toBe("length");
  expect(tokens.length).toBeGreaterThanOrEqual(12);
  expect(tokens.length).toBeLessThanOrEqual(13);
  expect(() => engine.generate({ prompt: new Int32Array(512).fill(300) })).toThrow(
    expect.objectContaining({ code: "context_length_exceeded" }),
  );
  await engine.close();
});

test("a longer one is refused, with the most that it may be", async () => {
  await expect(load(600)).rejects.toMatchObject({
    code: "invalid_option",
    param: "contextSize",
    message: expect.stringMatching(/may be 512 at most, not 600: .* 600 positions/),
  });
});
