import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bfclCalls } from "../corpora.mjs";
import { root } from "../../setup/paths.mjs";
import { runEngine } from "../engine/run-engine.mjs";

const shippedModel = join(root, "models/fermata-small.gguf");

/** Tool calls of BFCL, written with and without grammar and forced tokens by one sequence. */
export async function measureGuided({ model, threads, data, quick, runs, progress }) {
  const all = bfclCalls(data);
  const count = quick ? 3 : 24;
  const stride = Math.floor(all.length / count);
  const calls = all.filter((_, index) => index % stride === 0).slice(0, count);
  progress(`guided, ${calls.length} calls`);
  const directory = mkdtempSync(join(tmpdir(), "fermata-guided-"));
  try {
    const file = join(directory, "calls.json");
    writeFileSync(file, JSON.stringify(calls));
    const table = [];
    for (const [name, path] of [
      ["shape", model],
      ["shipped model", shippedModel],
    ]) {
      const measured = await runEngine("guided", { model: path, threads, calls: file, runs });
      for (const { rows, milliseconds } of measured.stepTimes) {
        progress(`  ${name}, a step of ${rows} rows: ${milliseconds.toFixed(2)} ms`);
      }
      table.push(...measured.rows.map((row) => ({ ...row, name: `${name}, ${row.name}` })));
    }
    return table;
  } finally {
    rmSync(directory, { recursive: true });
  }
}
