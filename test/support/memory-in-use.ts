// What this process has in memory when all that nobody needs was given back.
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { loadAddon } from "../../src/native/addon.ts";

setFlagsFromString("--expose-gc");
export const collectGarbage = runInNewContext("gc") as () => void;

/**
 * In bytes: `objects` of JavaScript, and RSS. Without a collection both would tell when V8 last
 * collected.
 */
export async function memoryInUse(): Promise<{ objects: number; rss: number }> {
  // The second one frees what the finalizers of the first let go.
  for (let round = 0; round < 2; round++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await loadAddon().giveBackMemory();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { objects: heapUsed + external, rss: await lowest(rss) };
}

/** V8 gives the pages of a collection back on threads of its own, which wait for a core where there are few. */
async function lowest(rss: number): Promise<number> {
  let least = rss;
  for (let look = 0; look < 10; look++) {
    await setTimeout(100);
    least = Math.min(least, process.memoryUsage.rss());
  }
  return least;
}
