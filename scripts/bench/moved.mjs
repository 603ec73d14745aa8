#!/usr/bin/env node
// node scripts/bench/moved.mjs [--tokens 4000] [--runs 5] [--shape 135M]
// A conversation that one server has answered goes on at another, which fetches its KV cache from Redis (--cache-remote):
// the time to the first token there, beside a third server that computes it. Needs `npm run build` and redis-server.
import { parseArgs } from "node:util";
import { modelOf, serveOptions } from "../simulate/calibrate/servers.mjs";
import { startRedis } from "./replicas/redis.mjs";
import { startReplica } from "./replicas/replica.mjs";
import { medians } from "./report/statistics.mjs";

const { values } = parseArgs({
  options: {
    tokens: { type: "string", default: "4000" },
    runs: { type: "string", default: "5" },
    shape: { type: "string", default: "135M" },
  },
});
const tokens = Number(values.tokens);
const runs = Number(values.runs);

/** Another conversation in each run, so that none finds what an earlier one left. */
const promptOf = (run) =>
  Array.from({ length: tokens }, (_, at) => 1000 + ((run * 7919 + at * 104_729) % 100_000));

/** @returns milliseconds to the first token, and how many tokens of the prompt were found in a cache */
async function firstToken(url, prompt) {
  const start = performance.now();
  const body = { model: "default", prompt, max_tokens: 8, temperature: 0, stream: true };
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream_options: { include_usage: true } }),
  });
  if (!response.ok) throw new Error(await response.text());
  let text = "";
  let firstMs = null;
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (firstMs === null && text.includes('"text":"')) firstMs = performance.now() - start;
  }
  const found = /"cached_tokens":(\d+)/.exec(text);
  return { firstMs, cached: Number(found?.[1] ?? 0) };
}

/** A sequence that nobody has continued for three seconds is written; others hear of it at once. */
const untilWritten = () => new Promise((resolve) => setTimeout(resolve, 6000));

const redis = await startRedis();
if (redis === null) throw new Error("redis-server is not installed");
const options = serveOptions(await modelOf(values.shape));
const shared = [...options, `--cache-remote=${redis.url}`];
const [from, to, alone] = [
  await startReplica("r1", shared),
  await startReplica("r2", shared),
  await startReplica("r3", options),
];
const rows = [];
try {
  // Two runs before those that count: the second server learns from the first what fetching takes, the third warms up.
  for (let run = -2; run < runs; run++) {
    const prompt = promptOf(run + 3);
    await firstToken(from.url, prompt);
    await untilWritten();
    const moved = await firstToken(to.url, prompt);
    const computed = await firstToken(alone.url, prompt);
    const row = { moved: moved.firstMs, computed: computed.firstMs, cached: moved.cached };
    process.stdout.write(`${run < 0 ? "before: " : ""}${JSON.stringify(row)}\n`);
    if (run >= 0) rows.push(row);
  }
} finally {
  for (const replica of [from, to, alone]) await replica.stop();
  await redis.stop();
}
const { moved, computed, cached } = medians(rows);
process.stdout.write(
  `${tokens} tokens, median of ${runs}: first token after ${moved.toFixed(0)} ms (${cached} tokens fetched), ` +
    `computed after ${computed.toFixed(0)} ms: ${(moved / computed).toFixed(2)}x\n`,
);
