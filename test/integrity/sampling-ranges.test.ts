// Whatever a wire takes, the engine takes: the ends of every range go through the addon.
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { readFields } from "../../src/server/body/field.ts";
import { readSampling, samplingFields } from "../../src/server/body/generation.ts";
import { collect, loadTestEngine } from "../support/engine.ts";
import { greedy } from "../support/sampling.ts";

const contextSize = 512;
let engine: Engine;
beforeAll(async () => {
  engine = await loadTestEngine({ contextSize });
});
afterAll(() => engine.close());

const ends = Object.entries(samplingFields).flatMap(([name, field]) => {
  if (field.effect !== "honoured") return [];
  const { minimum, maximum, type } = field.type.schema;
  if (type !== "number" && type !== "integer") return [];
  // A seed has no end of its own.
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number;
  return [
    [name, minimum ?? MIN_SAFE_INTEGER],
    [name, maximum ?? MAX_SAFE_INTEGER],
  ] as [string, number][];
});

it("there is more than one sampler", () => {
  expect(new Set(ends.map(([name]) => name)).size).toBeGreaterThan(20);
});

it.each(ends)("%s %d", async (name, value) => {
  const { vocabularySize } = engine.model;
  const limits = { sampling: greedy, contextSize, vocabularySize };
  // DRY's fields count where its multiplier is not 0.
  const body = { dry_multiplier: 1, [name]: value };
  const given = readFields(samplingFields, body, { warn: () => {}, vocabularySize });
  const sampling = readSampling(given, limits);
  const prompt = await engine.tokenize("What is the weather in Paris?");
  const { finish } = await collect(engine.generate({ prompt, sampling, maxTokens: 1 }));
  expect(finish.usage.generatedTokens).toBeLessThanOrEqual(1);
});

it("a temperature that is hardly above 0 is 0", async () => {
  const prompt = await engine.tokenize("What is the weather in Paris?");
  const tokensAt = async (temperature: number): Promise<number[]> => {
    const sampling = { ...greedy, temperature };
    return (await collect(engine.generate({ prompt, sampling, maxTokens: 8 }))).tokens;
  };
  const likeliest = await tokensAt(0);
  expect(likeliest.length).toBeGreaterThan(1);
  for (const temperature of [1e-45, 1e-40, 1e-9])
    expect(await tokensAt(temperature)).toEqual(likeliest);
});
