import { fileURLToPath } from "node:url";
import { runProcess } from "../processes.mjs";

const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));

/** Runs one task of worker.mjs on Fermata's engine and returns what it measured. */
export async function runEngine(task, load) {
  return JSON.parse(await runProcess(process.execPath, [worker, task, JSON.stringify(load)]));
}
