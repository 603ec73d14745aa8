// Greedy generation by llama.cpp, for evaluate.py. Needs node-llama-cpp (see README in models/).
// Usage: node generate.mjs MODEL.gguf [THREADS]. Reads one JSON a line and answers each with one:
//   {"tokenize": TEXT}            -> {"ids": [...]}
//   {"prompt": TEXT, "max": N}    -> {"ids": [...], "text": TEXT}, generated up to <|im_end|> or N tokens
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { getLlama } = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);
const [modelPath, threads = "1"] = process.argv.slice(2);

const llama = await getLlama({
  gpu: false,
  build: "never",
  logLevel: "error",
  maxThreads: Number(threads),
});
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({
  contextSize: 8192,
  threads: Number(threads),
  batchSize: 512,
});
const sequence = context.getSequence();
const end = model.tokenize("<|im_end|>", true)[0];

async function generate(prompt, max) {
  const tokens = model.tokenize(prompt, true);
  await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
  const rest = tokens.slice(sequence.nextTokenIndex);
  const ids = [];
  for await (const token of sequence.evaluate(rest, { temperature: 0, yieldEogToken: true })) {
    if (token === end) break;
    ids.push(token);
    if (ids.length >= max) break;
  }
  return { ids: ids.map(Number), text: model.detokenize(ids, true) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const answer =
    "tokenize" in task
      ? { ids: model.tokenize(task.tokenize, true).map(Number) }
      : await generate(task.prompt, task.max);
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit(0);
