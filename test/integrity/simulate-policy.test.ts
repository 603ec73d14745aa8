// The simulated engine finds in its cache what a real one finds: in slots and in memory, which also evict.
import { expect, test } from "vitest";
import { makeEngine } from "../../scripts/simulate/model/engine.mjs";
import { collect, loadTestEngine, scripted } from "../support/engine.ts";

const options = { parallel: 1, retainedSlots: 2, contextSize: 1024, stepTokenBudget: 512 };
const shared = 60;
const answer = 8;

/** Who asks, one request after the other: six conversations on three slots, some of which come back. */
const order = [0, 1, 2, 3, 3, 2, 0, 4, 5, 4, 1, 5, 0, 3];

/** A conversation's tokens: those of its prefix, then its own. */
function tokensOf(conversation: number, length: number): number[] {
  return Array.from({ length }, (_, at) => {
    const seed = at < shared ? conversation % 2 : 10 + conversation;
    return 300 + ((Math.imul(seed * 7919 + at * 104_729 + 17, 2_654_435_761) >>> 20) % 2000);
  });
}

/** Each prompt has the whole conversation so far, and 40 new tokens. */
function prompts(): { conversation: number; length: number }[] {
  const lengths = new Map<number, number>();
  return order.map((conversation) => {
    const length = (lengths.get(conversation) ?? 160 + 20 * conversation) + 40;
    lengths.set(conversation, length + answer);
    return { conversation, length };
  });
}

async function reusedByReal(): Promise<number[]> {
  const engine = await loadTestEngine({ ...options, cacheRam: 0 });
  const reused = [];
  for (const { conversation, length } of prompts()) {
    const tokens = tokensOf(conversation, length + answer);
    const { finish } = await collect(
      engine.generate({
        prompt: Int32Array.from(tokens.slice(0, length)),
        sampling: scripted(Int32Array.from(tokens.slice(length))),
        maxTokens: answer,
      }),
    );
    reused.push(finish.usage.cachedTokens);
  }
  await engine.close();
  return reused;
}

function reusedBySimulated(): number[] {
  const { parallel, retainedSlots, ...same } = options;
  const engine = makeEngine({
    ...same,
    parallel,
    slots: parallel + retainedSlots,
    microBatch: 512,
    targetItlMs: 250,
    ramBytes: 0,
    diskBytes: 0,
    bytesPerToken: 1,
  });
  const reused: number[] = [];
  let now = 0;
  for (const [index, { conversation, length }] of prompts().entries()) {
    engine.submit({
      id: index + 1,
      prefixSeed: 1 + (conversation % 2),
      seed: 10 + conversation,
      sharedTokens: shared,
      promptTokens: length,
      generatedTokens: answer,
      leaseMs: 0,
    });
    for (let ended = false; !ended; now += 10) {
      const { events } = engine.step(now)!;
      engine.took(10);
      for (const event of events) if (event.kind === "admitted") reused.push(event.reused!);
      ended = events.some(({ kind }) => kind === "finished");
    }
  }
  return reused;
}

test("requests one behind the other find the same tokens in both", async () => {
  const real = await reusedByReal();
  expect(reusedBySimulated()).toEqual(real);
  // Of all kinds: nothing, a prefix that others left, a conversation that stayed.
  expect(real.filter((tokens) => tokens === 0).length).toBeGreaterThan(0);
  expect(real.filter((tokens) => tokens === shared).length).toBeGreaterThan(0);
  expect(real.filter((tokens) => tokens > shared).length).toBeGreaterThan(2);
});
