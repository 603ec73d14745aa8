// The system gives a process no more threads.
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeEmbeddingModel } from "../support/embedding-model.ts";
import { canFail, failing } from "./support/failing-io.ts";
import { told } from "./support/injections.ts";

const child = join(import.meta.dirname, "support/no-threads-child.mjs");
const folder = mkdtempSync(join(tmpdir(), "fermata-threads-"));

async function run(moment: string, threads: number): Promise<string> {
  const from = join(folder, `${moment}-${threads}`);
  const embedding = await writeEmbeddingModel(join(folder, "embedding.gguf"), "mean");
  return execFileSync(process.execPath, [child, from, embedding, moment, String(threads)], {
    env: { ...process.env, ...failing({ threads: true, from }) },
    encoding: "utf8",
    timeout: 120_000,
  });
}

// With one thread it is the inference thread that does not start, with two ggml's.
test.runIf(canFail).each([1, 2])(
  "no thread starts while an engine loads, of %i",
  async (threads) => {
    expect(await run("loading", threads)).toMatch(
      /^no_threads The system starts no more threads.*ulimit -u.*--threads/,
    );
  },
);

test.runIf(canFail)("a loaded engine needs no more: it generates, embeds and closes", async () => {
  expect(await run("loaded", 2)).toBe("length true\n");
  told("the system starts no thread", 3);
});
