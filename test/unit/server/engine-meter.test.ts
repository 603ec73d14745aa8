import { expect, test } from "vitest";
import { EngineMeter } from "../../../src/server/about/engine.ts";
import type { ServerServices } from "../../../src/server/services.ts";

test("the rate is that of the last two seconds, and falls to nothing", () => {
  let now = 0;
  let step = (): void => {};
  const stats = {
    running: 1,
    waiting: 2,
    held: 3,
    cellsUsed: 4,
    cellsRetained: 5,
    cellsFree: 6,
    ramSequences: 7,
    ramBytes: 8,
    ramLimit: 9,
    diskFiles: 10,
    diskBytes: 11,
    diskLimit: 12,
    promptTokens: 100,
    resumedTokens: 20,
    cachedTokens: 60,
    prefilledTokens: 90,
    generatedTokens: 0,
    recomputedTokens: 30,
  };
  const engine = {
    stats: () => stats,
    onStep: (listener: () => void) => (step = listener),
  } as unknown as ServerServices["engine"];
  const model = { id: "tiny", created: 0, contextSize: 1000, parallel: 2, vocabularySize: 1 };
  const meter = new EngineMeter({ engine, model }, () => now);
  expect(meter.read()).toEqual({
    model: { id: "tiny", context_size: 1000 },
    sequences: { running: 1, waiting: 2, held: 3 },
    kv_cells: { used: 4, retained: 5, free: 6 },
    kv_ram: { sequences: 7, used: 8, limit: 9 },
    kv_disk: { sequences: 10, used: 11, limit: 12 },
    tokens_per_second: 0,
    prefilled_tokens: 90,
    new_tokens: 0,
    re_prefill_ratio: 1.5,
  });
  for (let tokens = 1; tokens <= 100; tokens++) {
    now += 50;
    stats.generatedTokens = tokens;
    step();
  }
  expect(meter.read().tokens_per_second).toBeCloseTo(20, 0);
  now += 1000;
  expect(meter.read().tokens_per_second).toBeLessThan(12);
  now += 1500;
  expect(meter.read().tokens_per_second).toBe(0);
});
