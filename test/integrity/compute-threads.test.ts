// On which cores the threads that compute may run.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { expect, it } from "vitest";
import { collect, loadTestEngine } from "../support/engine.ts";

const cores = availableParallelism();
const canSee = existsSync("/proc/self/task") && cores > 1;

/** Of each thread of this process that may run on one core only, that core. */
function placed(): string[] {
  return readdirSync("/proc/self/task")
    .map((thread) => readFileSync(`/proc/self/task/${thread}/status`, "utf8"))
    .map((status) => /Cpus_allowed_list:\s+(\S+)/.exec(status)![1]!)
    .filter((list) => /^\d+$/.test(list));
}

async function placedWith(threads: number): Promise<string[]> {
  const engine = await loadTestEngine({ contextSize: 256, parallel: 1, threads });
  try {
    const prompt = await engine.tokenize("Once upon a time");
    await collect(engine.generate({ prompt, maxTokens: 4 }));
    return placed();
  } finally {
    await engine.close();
  }
}

it.runIf(canSee)("as many as there are cores have a core each", async () => {
  const found = await placedWith(cores);
  expect(found).toHaveLength(cores);
  expect(new Set(found).size).toBe(cores);
});

it.runIf(canSee)("fewer run on any core", async () => {
  expect(await placedWith(cores - 1)).toEqual([]);
});
