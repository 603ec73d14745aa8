/**
 * How long large requests hold up another client's stream.
 *   node scripts/bench/stalls.mjs [--model FILE] [--repeat N] [CASE...]
 * For each case: the gaps between two tokens of a stream while the requests come in, and how late the server's event
 * loop was; at the end, which cases are within the bar. "nothing" is the same stream alone; compare with it, since other
 * programs slow the machine too. The exit code is 1 where a case is beyond the bar.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { openEndlessStream } from "./stalls/endless-stream.mjs";
import { caseNames } from "./stalls/requests.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: "string" }, repeat: { type: "string", default: "3" } },
});
const names = positionals.length === 0 ? caseNames : positionals;
const pauseMs = 300;
/** Of the gaps, in milliseconds. */
const bar = { p99: 50, longest: 200 };

const folder = mkdtempSync(join(tmpdir(), "fermata-stalls-"));
const server = startServer(join(folder, "store.sqlite"), values.model);
process.on("exit", () => server.kill("SIGKILL"));
const url = await addressOf(server);
const sender = new Worker(new URL("stalls/sender.mjs", import.meta.url), { workerData: { url } });
const results = [];
for (const name of names) {
  const measured = await measure(name);
  const result = { name, ...figuresOf(measured.gaps) };
  results.push(result);
  console.log(row(result, measured));
}
console.log(verdict(results));
if (!results.every(isWithin)) process.exitCode = 1;
await sender.terminate();
server.kill();
await once(server, "exit");
rmSync(folder, { recursive: true, force: true });

function startServer(store, model) {
  const options = ["--port=0", "--no-supervise", `--store=${store}`, "--log-level=warn"];
  if (model !== undefined) options.push(`--model=${model}`);
  return fork(join(root, "dist/cli/main.js"), ["serve", ...options], {
    cwd: root,
    execArgv: ["--import", new URL("stalls/delay-probe.mjs", import.meta.url).href],
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
}

async function addressOf(process) {
  let said = "";
  for await (const text of process.stdout) {
    said += text;
    const found = /Serving +(\S+)\/v1/.exec(said);
    if (found !== null) return found[1];
  }
  throw new Error("The server did not start.");
}

/** The sender's thread prepares and sends: this one only looks at the clock. */
async function measure(name) {
  await tell({ prepare: name });
  const stream = await openStream();
  await setTimeout(pauseMs);
  server.send("reset");
  const from = stream.times.length;
  const outcomes = [];
  for (let turn = 0; turn < Number(values.repeat); turn++) {
    outcomes.push(await tell({ send: name }));
    await setTimeout(pauseMs);
  }
  server.send("read");
  const [delay] = await once(server, "message");
  const gaps = stream.times.slice(from).map((time, index) => time - stream.times[from + index - 1]);
  stream.stop();
  return { gaps: gaps.filter((gap) => gap >= 0), delay, outcomes };
}

async function tell(message) {
  sender.postMessage(message);
  const [answer] = await once(sender, "message");
  return answer;
}

async function openStream() {
  const times = [];
  const { leave } = await openEndlessStream(url, () => times.push(performance.now()));
  while (times.length < 3) await setTimeout(10);
  return { times, stop: leave };
}

function figuresOf(gaps) {
  const sorted = gaps.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), longest: at(1) };
}

function row({ name, ...figures }, { gaps, delay, outcomes }) {
  const text = (values) =>
    Object.entries(values)
      .map(([key, value]) => `${key} ${value.toFixed(1)}`)
      .join(", ");
  const answers = outcomes.map(({ status, ms }) => `${status} in ${Math.round(ms)} ms`);
  return `${name}\n  gaps (${gaps.length}): ${text(figures)}\n  event loop: ${text(delay)}\n  answers: ${answers.join(", ")}`;
}

function isWithin({ p99, longest }) {
  return p99 < bar.p99 && longest < bar.longest;
}

function verdict(results) {
  const lines = results.map(
    (result) =>
      `  ${isWithin(result) ? "within" : "BEYOND"}  ${result.name}: p99 ${result.p99.toFixed(1)}, longest ${result.longest.toFixed(1)}`,
  );
  const within = results.filter(isWithin).length;
  const title = `${within} of ${results.length} cases are within the bar: p99 below ${bar.p99} ms, longest below ${bar.longest} ms`;
  return [title, ...lines].join("\n");
}
