import { fileURLToPath } from "node:url";
import { runProcess } from "../../bench/processes.mjs";

const worker = fileURLToPath(new URL("engine-worker.mjs", import.meta.url));
/** Until every process has loaded its model. */
const loadMs = 12_000;
const phaseMs = 9_000;

async function run(task, load) {
  return JSON.parse(await runProcess(process.execPath, [worker, task, JSON.stringify(load)]));
}

/** Steps of one engine that has the machine for itself. */
export function measureSteps(model, engine) {
  return run("steps", { model, engine });
}

/** What up to `most` engines can do at once, as lists with one entry for each that computes. */
function mixesOf(most) {
  const mixes = [];
  for (let chunks = 0; chunks <= most; chunks++)
    for (let decodes = chunks === 0 ? 1 : 0; chunks + decodes <= most; decodes++)
      mixes.push([...Array(chunks).fill("chunk"), ...Array(decodes).fill("decode")]);
  return mixes;
}

/**
 * How many times as long steps take beside other engines of this machine: { chunk, decode }, rows by how many of the
 * others compute chunks, columns by how many decode.
 */
export async function measureSlowdowns(model, engine, most) {
  const mixes = mixesOf(most);
  const startAt = Date.now() + loadMs;
  const engines = await Promise.all(
    Array.from({ length: most }, (_, index) => {
      const phases = mixes.map((mix) => mix[index] ?? "idle");
      return run("together", { model, engine, startAt, phaseMs, phases });
    }),
  );
  const mean = (values) => values.reduce((total, value) => total + value, 0) / values.length;
  /** A step of `kind` beside so many others of each. */
  const stepMs = (kind, others) => {
    const size = (it) => others[it] + (it === kind ? 1 : 0);
    const wanted = mixes.findIndex((mix) =>
      ["chunk", "decode"].every((it) => mix.filter((one) => one === it).length === size(it)),
    );
    const own = engines.filter((_, index) => mixes[wanted][index] === kind);
    return mean(own.map((measured) => measured[wanted]));
  };
  const slowdowns = (kind) => {
    const alone = stepMs(kind, { chunk: 0, decode: 0 });
    return Array.from({ length: most }, (_, chunk) =>
      Array.from({ length: most - chunk }, (__, decode) =>
        Math.max(stepMs(kind, { chunk, decode }) / alone, 1),
      ),
    );
  };
  return { chunk: slowdowns("chunk"), decode: slowdowns("decode") };
}
