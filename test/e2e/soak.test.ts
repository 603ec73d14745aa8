// 2,000 requests over HTTP, many of them cut off, and holds among them: afterwards nothing is left of
// any, and the process is no larger than it was half-way.
import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memoryInUse } from "../support/memory-in-use.ts";
import { greedy } from "../support/sampling.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const requests = 2000;
const sideBySide = 12;

let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer({ engine: { contextSize: 1024, parallel: 4, threads: 1 } });
  await server.script("call", [
    callText("lookup", { key: "blue" }),
    callText("lookup", { key: "green" }),
    "Both are there.",
  ]);
});
afterAll(() => server.close());

const tools = [
  {
    type: "function" as const,
    function: { name: "lookup", parameters: { type: "object", properties: {} } },
  },
];

/** Deterministic choices: a failure can be repeated. */
function dice(seed: number): (sides: number) => number {
  let state = seed * 2654435761 + 1;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 16) % sides;
  };
}

async function one(index: number): Promise<"done" | "cut"> {
  const roll = dice(index);
  const external = roll(4) === 0;
  const controller = new AbortController();
  const cut = roll(3) === 0;
  if (cut) setTimeout(() => controller.abort(), roll(60));
  try {
    const stream = await server.client.chat.completions.create(
      {
        model: "default",
        stream: true,
        messages: [{ role: "user", content: external ? "call" : `Say ${roll(40)} words.` }],
        ...(external ? { tools } : {}),
        max_tokens: 1 + roll(24),
        ...(roll(5) === 0 ? { stop: ["e", " the"] } : {}),
      },
      { signal: controller.signal },
    );
    let pieces = 0;
    for await (const chunk of stream) {
      pieces += chunk.choices.length;
      // The other way to leave: stop reading, which closes the connection.
      if (!cut && roll(9) === 0 && pieces > 3) return "cut";
    }
    return "done";
  } catch (error) {
    if (cut) return "cut";
    throw error;
  }
}

/** Holds that nobody answers are ended by their reader. */
async function abandonedHold(): Promise<void> {
  const prompt = await server.engine.tokenize("hold");
  const generation = server.engine.generate({
    prompt,
    sampling: { ...greedy, temperature: 0.9, topK: 40, seed: randomInt(1000) },
    maxTokens: 30,
  });
  generation.pause();
  for await (const event of generation) {
    if (event.type === "hold") break;
  }
}

test("requests that come, go and break off leave nothing behind", async () => {
  const outcomes = { done: 0, cut: 0 };
  let next = 0;
  let halfWay = { objects: 0, rss: 0 };
  const worker = async (): Promise<void> => {
    while (next < requests) {
      const index = next++;
      if (index === requests / 2) halfWay = await memoryInUse();
      outcomes[await one(index)] += 1;
      if (index % 20 === 0) await abandonedHold();
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, worker));

  expect(outcomes.done + outcomes.cut).toBe(requests);
  expect(outcomes.cut).toBeGreaterThan(requests / 10);
  const stats = await server.settledStats();
  expect(stats.cellsUsed).toBe(0);
  expect(stats.cellsRetained + stats.cellsFree).toBe(server.engine.cache.cellsTotal);
  expect(await server.engine.checkIntegrity()).toBe("");
  const after = await memoryInUse();
  expect(after.objects / halfWay.objects).toBeLessThan(1.1);
  expect(after.rss / halfWay.rss).toBeLessThan(1.25);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toMatch(/fermata_sequences\{state="held"\} 0/);
}, 1_800_000);
