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

/** How many times as long steps take when 1, 2, … engines compute on this machine: { chunk: [1, …], decode: [1, …] }. */
export async function measureSlowdowns(model, engine, most) {
  const measured = [];
  for (let engines = 1; engines <= most; engines++) {
    const startAt = Date.now() + loadMs;
    const load = { model, engine, startAt, lastsMs };
    const all = await Promise.all(Array.from({ length: engines }, () => run("together", load)));
    const mean = (name) => all.reduce((sum, it) => sum + it[name], 0) / engines;
    measured.push({ chunk: mean("chunkMs"), decode: mean("decodeMs") });
  }
  const [alone] = measured;
  const slowdowns = (name) => measured.map((it) => Math.max(it[name] / alone[name], 1));
  return { chunk: slowdowns("chunk"), decode: slowdowns("decode") };
}
