#!/usr/bin/env node
// node scripts/load.mjs [--minutes 120] [--warm-up 40] [--settle 20] [--port 0] [--clients 6] [--think 4] [--every 30]
//   [--out load.jsonl]
// Hours of mixed work against `fermata serve --audit`, with a line of figures every --every seconds: whether memory,
// descriptors or stored rows grow. Before, the same work without pauses until what has a limit has reached it or grows no
// more (--warm-up minutes at most), then --settle minutes of the work itself, in which V8 compiles and the heaps find their size.
// Needs `npm run build`. Ends with 1 if something was lost or grew.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import Database from "libsql";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "120" },
    "warm-up": { type: "string", default: "40" },
    settle: { type: "string", default: "20" },
    port: { type: "string", default: "0" },
    clients: { type: "string", default: "6" },
    think: { type: "string", default: "4" },
    every: { type: "string", default: "30" },
    out: { type: "string", default: "load.jsonl" },
  },
});
const root = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "fermata-load-"));
const path = (name) => join(folder, name);
const startedAt = Date.now();
const minutes = (text) => Number(text) * 60_000;
/** Before the end of the warm-up nobody knows. */
let endAt = Infinity;
const isWarm = () => endAt < Infinity;
const isMeasured = () => isWarm() && Date.now() >= endAt - minutes(values.minutes);

const fixture = (name, ...args) => ({
  command: process.execPath,
  args: [join(root, "test/fixtures/mcp", name), ...args],
  approval: "never",
});
const mcpServers = {
  good: fixture("server.mjs", "echo", "slow", "fail", "picture"),
  bad: fixture("misbehaving.mjs"),
};
writeFileSync(path("mcp.json"), JSON.stringify({ mcpServers }));
const agents = {
  boss: { description: "Plans.", limits: { tokens: 400 } },
  reader: { description: "Reads.", tools: { good: ["echo"] }, limits: { tokens: 200 } },
};
writeFileSync(path("agents.json"), JSON.stringify({ supervisor: "boss", agents }));

let log = "";
const server = spawn(
  process.execPath,
  [
    join(root, "dist/cli/main.js"),
    "serve",
    `--port=${values.port}`,
    "--audit",
    "--ctx-size=4096",
    "--threads=1",
    `--mcp-config=${path("mcp.json")}`,
    `--agents=${path("agents.json")}`,
    `--store=${path("store.sqlite")}`,
    "--store-limits=responses=200,megabytes=32",
    "--cache-ram=64",
    "--cache-disk=64",
    `--cache-dir=${path("contexts")}`,
    `--audit-log=${path("audit.jsonl")}`,
    "--tool-timeout=silence=5",
    "--approval=never",
  ],
  { stdio: ["ignore", "pipe", "pipe"] },
);
let worker = NaN;
server.stderr.on("data", (text) => {
  log = (log + text).slice(-1_000_000);
  worker = Number([...log.matchAll(/"pid":(\d+)[^\n]*worker ready/g)].at(-1)?.[1] ?? worker);
});
let ended = false;
server.once("exit", () => (ended = true));
const url = await new Promise((resolve, reject) => {
  server.once("exit", () => reject(new Error(log)));
  server.stdout.on("data", (text) => {
    const serving = /Serving +(\S+)\/v1/.exec(text);
    if (serving !== null) resolve(serving[1]);
  });
});

const pick = (list) => list[Math.floor(Math.random() * list.length)];
const words = () =>
  `${pick(["Add", "List", "Read", "Name"])} ${Math.floor(Math.random() * 1e6)} and say why.`;
const send = (method, where, body, signal) =>
  fetch(url + where, {
    method,
    ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
const counts = {};
const unexpected = [];
/** The answer's body; whatever is not among `statuses` is noted. */
async function ask(method, where, body, statuses = [200]) {
  const reply = await send(method, where, body);
  const text = await reply.text();
  counts[reply.status] = (counts[reply.status] ?? 0) + 1;
  if (!statuses.includes(reply.status))
    unexpected.push(`${method} ${where} ${reply.status} ${text.slice(0, 300)}`);
  if (text.includes("integrity check failed")) unexpected.push(text.slice(0, 300));
  return text.startsWith("{") ? JSON.parse(text) : text;
}
const messages = () => [{ role: "user", content: words() }];
const short = { max_tokens: 24 };
const bad = readFileSync(join(root, "test/fixtures/mcp/misbehaving.mjs"), "utf8");
const faults = [...bad.matchAll(/^ {2}(?:async )?(\w+)(?::| ?\().*=>/gm)].map(([, name]) => name);

/** One piece of work each. */
const kinds = {
  chatWithTools: () =>
    ask("POST", "/v1/chat/completions", { messages: messages(), stream: true, ...short }),
  chatWithOwnTools: () => {
    const parameters = { type: "object", properties: { place: { type: "string", maxLength: 20 } } };
    const tools = [{ type: "function", function: { name: "weather", parameters } }];
    const choice = { tool_choice: "required", tools };
    return ask("POST", "/v1/chat/completions", { messages: messages(), ...choice, max_tokens: 64 });
  },
  responsesStored: async () => {
    let previous = null;
    for (let turn = 0; turn < 4; turn++) {
      const body = { input: words(), previous_response_id: previous, max_output_tokens: 24 };
      previous = (await ask("POST", "/v1/responses", body)).id;
      await think();
    }
    if (Math.random() < 0.5) await ask("DELETE", `/v1/responses/${previous}`);
  },
  responsesStreamed: () =>
    ask("POST", "/v1/responses", { input: words(), stream: true, max_output_tokens: 24 }),
  responsesInBackground: async () => {
    const body = { input: words(), background: true, max_output_tokens: 60 };
    const { id } = await ask("POST", "/v1/responses", body);
    if (Math.random() < 0.5) await ask("POST", `/v1/responses/${id}/cancel`);
    await ask("GET", `/v1/responses/${id}?stream=true`, undefined, [200, 400]);
    await ask("GET", `/v1/responses/${id}`);
  },
  conversation: async () => {
    const { id } = await ask("POST", "/api/conversations", {}, [201]);
    for (let turn = 0; turn < 2; turn++) {
      const run = { message: words(), max_tokens: 30 };
      const { run_id, stream_url } = await ask("POST", `/api/conversations/${id}/runs`, run, [202]);
      if (Math.random() < 0.3)
        await ask("POST", `/api/conversations/${id}/runs/${run_id}/cancel`, {}, [202, 409]);
      await ask("GET", stream_url, undefined, [200, 204]);
    }
    if (Math.random() < 0.7) await ask("DELETE", `/api/conversations/${id}`, undefined, [204]);
  },
  agent: () =>
    ask("POST", "/v1/chat/completions", { model: "boss", messages: messages(), max_tokens: 60 }),
  mcpFault: () => {
    const choice = { type: "function", function: { name: `bad_${pick(faults)}` } };
    return ask("POST", "/v1/chat/completions", {
      messages: messages(),
      tool_choice: choice,
      max_tokens: 60,
    });
  },
  cancelled: async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), Math.random() * 400);
    const body = { messages: messages(), stream: Math.random() < 0.5, max_tokens: 400 };
    await send("POST", "/v1/chat/completions", body, stop.signal)
      .then((reply) => reply.text())
      .catch(() => {});
  },
  dyingClient: async () => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {});
    const body = JSON.stringify({ messages: messages(), stream: true, max_tokens: 200 });
    const sent = Math.random() < 0.5 ? body : body.slice(0, 20);
    const head = [
      "POST /v1/chat/completions HTTP/1.1",
      "host: 127.0.0.1",
      "content-type: application/json",
    ];
    socket.write(`${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${sent}`);
    await sleep(Math.random() * 600);
    socket.resetAndDestroy();
  },
};
const think = () =>
  isWarm() ? sleep(Number(values.think) * 1000 * (0.2 + 1.6 * Math.random())) : Promise.resolve();
async function client() {
  await fill();
  while (Date.now() < endAt && !ended) {
    const kind = pick(Object.keys(kinds));
    counts[kind] = (counts[kind] ?? 0) + 1;
    await kinds[kind]().catch((error) => unexpected.push(`${kind}: ${error.cause ?? error}`));
    await think();
  }
}

/** Long turns that begin alike, until there is no room for more of them: this takes far less time than the mixed work. */
async function fill() {
  const long = "one two three ".repeat(500);
  const format = { type: "json_schema", json_schema: { name: "n", schema: { enum: [1, 2] } } };
  while (!isWarm() && !ended && !(samples.at(-1)?.filled.turns.share > 0.98)) {
    const asked = [{ role: "user", content: long + words() }];
    const body = { messages: asked, response_format: format, tool_choice: "none" };
    await ask("POST", "/v1/chat/completions", body).catch((error) =>
      unexpected.push(`fill: ${error.cause ?? error}`),
    );
  }
}

const status = (pid) => readFileSync(`/proc/${pid}/status`, "utf8");
const processFigures = (pid) => ({
  pid,
  rss_kb: Number(/VmRSS:\s+(\d+)/.exec(status(pid))[1]),
  fds: readdirSync(`/proc/${pid}/fd`).length,
});
function storedRows() {
  const database = new Database(path("store.sqlite"), { readonly: true });
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  const rows = {};
  for (const { name } of tables) {
    if (!name.startsWith("sqlite_"))
      rows[name] = database.prepare(`SELECT count(*) AS n FROM "${name}"`).get().n;
  }
  const [{ integrity_check: integrity }] = database.pragma("integrity_check");
  database.close();
  return { rows, integrity };
}
/** Of what has a limit in bytes: how much of it is used. */
async function filled() {
  const text = await (await send("GET", "/metrics", undefined, AbortSignal.timeout(30_000))).text();
  const bytes = (name, state) =>
    Number(new RegExp(`^${name}\\{state="${state}"\\} (\\S+)$`, "m").exec(text)?.[1] ?? 0);
  const part = (name) => {
    const used = bytes(name, "used") + bytes(name, "forks");
    return { used, share: +(used / (used + bytes(name, "free"))).toFixed(3) };
  };
  return {
    turns: part("fermata_turn_bytes"),
    ram: part("fermata_ram_bytes"),
    disk: part("fermata_disk_bytes"),
  };
}
const first = worker;
const samples = [];
let told = 0;
async function sample() {
  const health = await (
    await send("GET", "/health", undefined, AbortSignal.timeout(30_000))
  ).json();
  const line = {
    minutes: +((Date.now() - startedAt) / 60_000).toFixed(2),
    measured: isMeasured(),
    health: health.status,
    worker: processFigures(worker),
    supervisor: processFigures(server.pid),
    store: storedRows(),
    filled: await filled(),
    counts: { ...counts },
    unexpected: unexpected.slice(told, told + 5),
  };
  told = unexpected.length;
  samples.push(line);
  appendFileSync(values.out, `${JSON.stringify(line)}\n`);
}

/** Full, or as full as three minutes ago: what has a limit in bytes, and the responses, of which 200 are kept. */
function isFull() {
  const now = samples.at(-1);
  const before = samples.findLast(({ minutes }) => minutes < now?.minutes - 3);
  if (before === undefined) return false;
  const isSteady = ([name, { used, share }]) =>
    share > 0.98 || (name !== "turns" && used <= before.filled[name].used * 1.01);
  return Object.entries(now.filled).every(isSteady) && now.store.rows.responses >= 200;
}

/** Growth by least squares, per hour, as a share of the mean, and its standard error. */
function slope(figure) {
  const points = samples
    .filter(({ measured }) => measured)
    .map((line) => [line.minutes / 60, figure(line)]);
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  const under = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  const growth = over / under;
  const left = points.reduce((sum, point) => {
    return sum + (point[1] - y - growth * (point[0] - x)) ** 2;
  }, 0);
  const error = Math.sqrt(left / (points.length - 2) / under);
  const percent = (value) => +((100 * value) / y).toFixed(2);
  return {
    mean: Math.round(y),
    percent_an_hour: percent(growth),
    standard_error: percent(error),
  };
}

console.log(`${url}, figures in ${values.out}`);
let warmedUp = null;
const clients = Promise.all(Array.from({ length: Number(values.clients) }, client));
while (Date.now() < endAt && !ended) {
  await sample().catch((error) => unexpected.push(`sample: ${error}`));
  const isLate = Date.now() - startedAt > minutes(values["warm-up"]);
  if (!isWarm() && (isLate || isFull())) {
    endAt = Date.now() + minutes(values.settle) + minutes(values.minutes);
    warmedUp = { minutes: samples.at(-1)?.minutes, full: isFull() };
    console.log(`warm after ${JSON.stringify(warmedUp)}`);
  }
  await sleep(Number(values.every) * 1000);
}
await clients;
const summary = {
  warm_up: warmedUp,
  worker_rss_kb: slope(({ worker }) => worker.rss_kb),
  worker_fds: slope(({ worker }) => worker.fds),
  supervisor_rss_kb: slope(({ supervisor }) => supervisor.rss_kb),
  supervisor_fds: slope(({ supervisor }) => supervisor.fds),
  same_worker: worker === first && !ended,
  store: [...new Set(samples.map(({ store }) => store.integrity))],
  counts,
  unexpected,
};
appendFileSync(values.out, `${JSON.stringify({ summary })}\n`);
console.log(JSON.stringify(summary, null, 1));
if (!ended) {
  server.kill();
  await once(server, "exit");
}
rmSync(folder, { recursive: true });
const grew = summary.worker_rss_kb.percent_an_hour > 1 || summary.worker_fds.percent_an_hour > 1;
process.exit(grew || !summary.same_worker || unexpected.length > 0 ? 1 : 0);
