import { fileURLToPath } from "node:url";
import { runProcess } from "../../bench/processes.mjs";

const worker = fileURLToPath(new URL("engine-worker.mjs", import.meta.url));
/** Until every process has loaded its model. */
const loadMs = 12_000;
const lastsMs = 10_000;

async function run(task, load) {
  return JSON.parse(await runProcess(process.execPath, [worker, task, JSON.stringify(load)]));
}

/** Steps of one engine that has the machine for itself. */
export function measureSteps(model, engine) {
  return run("steps", { model, engine });
}

/** How many times as long steps take when so many engines compute on this machine: [1, …]. */
export async function measureSlowdowns(model, engine, most) {
  const slowdowns = [];
  let alone;
  for (let engines = 1; engines <= most; engines++) {
    const startAt = Date.now() + loadMs;
    const load = { model, engine, startAt, lastsMs };
    const all = await Promise.all(Array.from({ length: engines }, () => run("together", load)));
    const mean = (name) => all.reduce((sum, it) => sum + it[name], 0) / engines;
    const now = { chunkMs: mean("chunkMs"), decodeMs: mean("decodeMs") };
    alone ??= now;
    slowdowns.push((now.chunkMs / alone.chunkMs + now.decodeMs / alone.decodeMs) / 2);
  }
  return slowdowns;
}
