// Marks cross into the addon: those that a prompt cannot have are refused there.
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { collect, holdAtEnd, loadTestEngine, readUntil, scripted } from "../support/engine.ts";

let engine: Engine;
let prompt: Int32Array;
beforeAll(async () => {
  engine = await loadTestEngine({ contextSize: 512 });
  prompt = await engine.tokenize("What is the weather in Paris?");
});
afterAll(() => engine.close());

const wrong = [[0], [-1], [3, 2], [2, 2], [10_000], Array.from({ length: 65 }, (_, at) => at + 1)];

it.each(wrong)("a prompt with the marks %j and the like is refused", (...marks) => {
  const request = { prompt, marks: Int32Array.from(marks), maxTokens: 1 };
  expect(() => engine.generate(request)).toThrow(/marks/u);
});

it("a prompt's own length is a mark, and a resume has marks too", async () => {
  const generation = engine.generate({
    prompt,
    marks: Int32Array.from([1, 3, prompt.length]),
    sampling: scripted(prompt.subarray(0, 2)),
    pause: holdAtEnd,
  });
  await readUntil(generation, "hold");
  const resume = { tokens: prompt, keepPending: true };
  expect(() => generation.resume({ ...resume, marks: Int32Array.from([9999]) })).toThrow(/marks/u);
  generation.resume({ ...resume, marks: Int32Array.from([2]) });
  await readUntil(generation, "hold");
  generation.release();
  const { finish } = await collect(generation);
  expect(finish.usage.resumedTokens).toBeGreaterThanOrEqual(prompt.length);
});
