import { medians, quantile } from "../report/statistics.mjs";
import { withFiles } from "../servers/files.mjs";
import { beladyRows, leastRows, lruRows, pinnedRows } from "../retention/oracle.mjs";
import { peakMemory } from "../retention/peak-memory.mjs";
import { replay } from "../retention/replay.mjs";
import { codingTrajectories, recordedTrajectories } from "../retention/trajectories.mjs";
import { fermata, llamaServer } from "../servers/contestants.mjs";
import { chosen } from "./chosen.mjs";

const running = 4;
const contexts = 8;
const contextTokens = 4096;

const fullLoad = { turns: 3, turnTokens: 32, contextWords: 900, agentsPerSlot: [1, 2, 4, 8] };
const quickLoad = { turns: 2, turnTokens: 8, contextWords: 100, agentsPerSlot: [1] };

const ours = ["--parallel", running, "--ctx-size", contextTokens, "--store", "none"].map(String);
const eightContexts = ["--retained-slots", String(contexts - running)];
const theirs = ["-np", contexts, "-c", contexts * contextTokens].map(String);

/** Four sequences run and eight contexts fit the KV cache; what is below it differs. */
const settings = [
  fermata("nothing kept", [...ours, "--no-context-cache", "--cache-ram", "0"]),
  fermata("slots", [...ours, ...eightContexts, "--cache-ram", "0"]),
  fermata("slots and memory", [...ours, ...eightContexts, "--cache-ram", "2048"]),
  withFiles("slots, little memory and files", [...ours, ...eightContexts, "--cache-ram", "64"]),
  llamaServer("slots", [...theirs, "--no-kv-unified", "--cache-ram", "0"]),
  llamaServer("slots and memory", [...theirs, "--no-kv-unified", "--cache-ram", "2048"]),
  llamaServer("a pool and memory", [...theirs, "--kv-unified", "--cache-ram", "2048"]),
  llamaServer("as it comes", []),
];

function loads({ data, quick, perSlot: wanted, toolTimes }) {
  const { agentsPerSlot, ...load } = quick ? quickLoad : fullLoad;
  return (wanted ?? agentsPerSlot).flatMap((perSlot) => {
    const sized = { ...load, toolTimes, agents: perSlot * running };
    const coding = {
      kind: "coding",
      perSlot,
      load: sized,
      trajectories: codingTrajectories(sized),
    };
    if (data === undefined) return [coding];
    return [
      coding,
      { kind: "tau-bench", perSlot, load: sized, trajectories: recordedTrajectories(data, sized) },
    ];
  });
}

async function countTokens(url, content) {
  const response = await fetch(`${url}/tokenize`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ content }),
  });
  return (await response.json()).tokens.length;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

function summarize({ seconds, turns }, sharedTokens) {
  const ttfts = (isWanted) => turns.filter(isWanted).map(({ ttft }) => ttft);
  const first = ttfts(({ turn }) => turn === 0);
  const resumed = ttfts(({ turn }) => turn > 0);
  return {
    seconds,
    turnsPerMinute: (60 * turns.length) / seconds,
    computedRows: sum(turns.map((turn) => turn.promptTokens - turn.cachedTokens)),
    leastRows: leastRows(turns, sharedTokens),
    beladyRows: beladyRows(turns, contexts, sharedTokens),
    lruRows: lruRows(turns, contexts, sharedTokens),
    pinnedRows: pinnedRows(turns, contexts, sharedTokens),
    newcomersTtftP95: quantile(first, 0.95),
    resumeTtftP50: quantile(resumed, 0.5),
    resumeTtftP95: quantile(resumed, 0.95),
  };
}

/** A fresh server for each run, so that no run finds anything in the cache. */
async function runOnce(setting, context, { kind, load, trajectories }) {
  const server = await setting.start(context);
  try {
    return await server.during(async (url) => {
      const isShared = kind === "tau-bench";
      const shared = isShared ? await countTokens(url, trajectories[0].messages[0].content) : 0;
      const onTurn = (turns) => turns % load.agents || context.progress(`  ${turns} turns`);
      const run = await replay(url, trajectories, load.turnTokens, onTurn);
      return { ...summarize(run, shared), peakMiB: peakMemory(server.pid) };
    });
  } finally {
    await server.stop();
  }
}

/** More agents than slots, whose tools take seconds: what is computed again, and what that costs. */
export async function measureRetention(context) {
  const rows = [];
  for (const load of loads(context)) {
    const group = chosen(settings, context.only).map((setting) => ({ setting, results: [] }));
    for (let run = 1; run <= context.runs; run++) {
      for (const { setting, results } of group) {
        const what = `${load.kind}, ${load.perSlot} agents a slot`;
        context.progress(`retention, ${what}, run ${run} of ${context.runs}: ${setting.name}`);
        const result = await runOnce(setting, context, load);
        const ratio = (result.computedRows / result.leastRows).toFixed(2);
        context.progress(`  ${result.turnsPerMinute.toFixed(1)} turns a minute, rows ${ratio}x`);
        results.push(result);
      }
    }
    for (const { setting, results } of group) {
      const { name, isFermata, flags } = setting;
      const { kind, perSlot } = load;
      rows.push({ name, isFermata, flags, kind, perSlot, median: medians(results), runs: results });
    }
  }
  return rows;
}
