#!/usr/bin/env node
// node scripts/bench/replicas.mjs [--proxies haproxy,nginx] [--agents 24] [--rounds 6] [--kinds 3] [--atOnce 12] [--kills 0]
//   [--byPrefix] [--remote] [-- options of fermata serve]
// An agent load on one server, then on three behind each proxy, and once more with other agents: rows computed, and which
// requests left their replica. With --kills, one of the three is killed at random as often, and clients' requests that
// failed are counted. --byPrefix: without a bound on the load of a prefix, as packaging/ says it. --remote: with
// --cache-remote, on a redis-server of its own for each run. Needs `npm run build`.
import { parseArgs } from "node:util";
import { findProxy, startProxy } from "./replicas/proxies.mjs";
import { runLoad } from "./replicas/load.mjs";
import { startReplica } from "./replicas/replica.mjs";
import { killAtRandom } from "./replicas/kills.mjs";
import { startRedis } from "./replicas/redis.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    proxies: { type: "string", default: "haproxy,nginx" },
    agents: { type: "string", default: "24" },
    rounds: { type: "string", default: "6" },
    kinds: { type: "string", default: "3" },
    atOnce: { type: "string", default: "12" },
    kills: { type: "string", default: "0" },
    byPrefix: { type: "boolean", default: false },
    remote: { type: "boolean", default: false },
  },
});
const load = {
  agents: Number(values.agents),
  rounds: Number(values.rounds),
  kinds: Number(values.kinds),
  atOnce: Number(values.atOnce),
};
const kills = Number(values.kills);
const print = (line) => process.stdout.write(`${line}\n`);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

const metricOf = (replicas, name) => Promise.all(replicas.map((replica) => replica.metric(name)));

/** First with empty caches, then with other agents of the same kinds. */
async function measured(replicas, url) {
  const passes = [];
  for (const first of [0, load.agents]) {
    const before = await metricOf(replicas, "fermata_prefilled_tokens_total");
    const { seconds, requests } = await runLoad(url, { ...load, first });
    const after = await metricOf(replicas, "fermata_prefilled_tokens_total");
    const recomputed = sum(await metricOf(replicas, "fermata_recomputed_tokens_total"));
    const moved = requests.filter(({ replica, before }) => before !== null && replica !== before);
    const rows = after.map((count, index) => count - before[index]);
    passes.push({ seconds, rows, recomputed, requests, moved: moved.length });
  }
  return passes;
}

function show(name, passes, alone) {
  passes.forEach((pass, index) =>
    showPass(`${name} ${["cold", "warm"][index]}`, pass, alone?.[index]),
  );
}

function showPass(name, { seconds, rows, recomputed, requests, moved }, alone) {
  const total = sum(rows);
  const prompts = sum(requests.map(({ promptTokens }) => promptTokens));
  print(
    `${name.padEnd(15)} ${String(total).padStart(8)} rows (${rows.join(" + ")})${
      alone === undefined ? "" : `, ${(total / sum(alone.rows)).toFixed(3)} of one server's`
    }; ${requests.length} requests, ${prompts} prompt tokens, ${moved} left their replica, ${recomputed} rows recomputed, ${seconds.toFixed(1)} s`,
  );
}

const start = (name, redis) =>
  startReplica(
    name,
    redis === null ? positionals : [...positionals, `--cache-remote=${redis.url}`],
  );
const proxies = values.proxies.split(",").filter((kind) => findProxy(kind) !== null);

/** Three replicas behind the proxy; they have all stopped when it resolves. */
async function behind(kind, work) {
  const redis = values.remote ? await startRedis() : null;
  if (values.remote && redis === null) throw new Error("--remote needs redis-server");
  const replicas = await Promise.all(["r1", "r2", "r3"].map((name) => start(name, redis)));
  const ports = replicas.map(({ port }) => port);
  const proxy = await startProxy(kind, ports, { isByPrefix: values.byPrefix });
  await work(proxy.url, replicas);
  await Promise.all(replicas.map((replica) => replica.stop()));
  await proxy.stop();
  await redis?.stop();
}

if (kills === 0) {
  const one = await start("r1", null);
  const alone = await measured([one], one.url);
  await one.stop();
  show("one server", alone);
  for (const kind of proxies)
    await behind(kind, async (url, replicas) => show(kind, await measured(replicas, url), alone));
} else {
  for (const kind of proxies)
    await behind(kind, async (url, replicas) => {
      const counts = await killAtRandom(url, replicas, { kills, load });
      print(`${kind.padEnd(12)} ${JSON.stringify(counts)}`);
    });
}
