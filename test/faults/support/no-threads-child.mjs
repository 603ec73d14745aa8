// An engine and an embedder in a process that starts no thread from a moment on.
//   node no-threads-child.mjs <file that begins it> <embedding model> <moment> <threads>
import { writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { Embedder } from "../../../dist/engine/embedder.js";
import { Engine } from "../../../dist/engine/engine.js";

const [from, embedding, moment, threads] = process.argv.slice(2);
const begin = (reached) => reached === moment && writeFileSync(from, "");

// libuv starts its threads at their first use, and ends the process where it cannot.
await Promise.all(Array.from({ length: 8 }, () => stat(".")));

try {
  const embedder = await Embedder.load({ modelPath: embedding, threads: Number(threads) });
  const engine = await Engine.load(
    {
      modelPath: new URL("../../../models/fermata-small.gguf", import.meta.url).pathname,
      contextSize: 1024,
      threads: Number(threads),
      cacheRamBytes: 0,
    },
    { onProgress: () => begin("loading") },
  );
  begin("loaded");
  const generation = engine.generate({ prompt: await engine.tokenize("Hello"), maxTokens: 3 });
  let finish;
  for await (const event of generation) finish = event.reason ?? finish;
  const { vectors } = await embedder.embed(["a text"]);
  await engine.close();
  console.log(finish, vectors[0].length > 0);
} catch (error) {
  console.log(error.code, error.message);
}
