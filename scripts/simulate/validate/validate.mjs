// Real servers behind HAProxy under the agent load, then the same in the simulator.
import { findProxy, startProxy } from "../../bench/replicas/proxies.mjs";
import { startReplica } from "../../bench/replicas/replica.mjs";
import { watchingIdle } from "../../bench/report/idle.mjs";
import { medians } from "../../bench/report/statistics.mjs";
import { SetupError } from "../../setup/report.mjs";
import { averageOf } from "../calibrate/average.mjs";
import { modelOf, serveOptions } from "../calibrate/servers.mjs";
import { summarize } from "../report/summary.mjs";
import { simulateReplicas } from "../simulate-replicas.mjs";
import { runRealLoad, sessionsOf } from "./real-load.mjs";

export const load = { agents: 36, rounds: 4, kinds: 3, atOnce: 9 };

const sum = (values) => values.reduce((total, value) => total + value, 0);

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** What agents of one kind have in common: what the first turns find in the cache that find something. */
function sharedTokensOf(turns) {
  const found = turns.filter(({ round, cachedTokens }) => round === 0 && cachedTokens > 0);
  return median(found.map(({ cachedTokens }) => cachedTokens));
}

async function withServers(model, count, action) {
  const names = ["r1", "r2", "r3"].slice(0, count);
  const replicas = await Promise.all(names.map((name) => startReplica(name, serveOptions(model))));
  // One server stands under all three names.
  const ports = [0, 1, 2].map((index) => replicas[index % count].port);
  const proxy = await startProxy("haproxy", ports);
  try {
    return await action(proxy.url, replicas);
  } finally {
    await proxy.stop();
    await Promise.all(replicas.map((replica) => replica.stop()));
  }
}

const prefilled = async (replicas) =>
  sum(await Promise.all(replicas.map((it) => it.metric("fermata_prefilled_tokens_total"))));

/** Fresh servers, so that no run finds anything in a cache. */
function realRun(model, count) {
  return withServers(model, count, async (url, replicas) => {
    const turns = await runRealLoad(url, load);
    return { turns, rows: await prefilled(replicas) };
  });
}

function figuresOf(turns, rows) {
  const recorded = turns.map((turn) => ({ ...turn, reused: turn.cachedTokens ?? turn.reused }));
  const seconds = Math.max(...turns.map(({ endedAt }) => endedAt)) / 1000;
  const { turnsPerMinute, ttftP50, ttftP95, answerP50, answerP95 } = summarize(recorded, seconds);
  return { turnsPerMinute, ttftP50, ttftP95, answerP50, answerP95, rows };
}

function simulatedRun(calibration, sessions, count) {
  const options = { replicas: count, router: "bounded", sharedHost: true };
  const { clients, replicas } = simulateReplicas(calibration, options, (all) =>
    all.keep(load.atOnce, sessions),
  );
  const rows = sum(replicas.map((replica) => replica.counts().prefilledTokens));
  const turns = clients.turns.map((turn) => ({ ...turn, replica: turn.replica.name }));
  return { figures: figuresOf(turns, rows), spread: spreadOf(turns) };
}

/** How many turns each replica answered. */
function spreadOf(turns) {
  const names = [...new Set(turns.map(({ replica }) => replica))].toSorted();
  const counts = names.map((name) => turns.filter(({ replica }) => replica === name).length);
  return counts.join(" + ");
}

/** A real run of each count of replicas: whether other work was seen beside them. */
async function runEach(model, measured, progress) {
  const { busy } = await watchingIdle(async () => {
    for (const count of [1, 3]) {
      progress(`${count} replica${count === 1 ? "" : "s"}`);
      const real = await realRun(model, count);
      progress(`  turns by replica: ${spreadOf(real.turns)}`);
      measured[count].push(real);
    }
  });
  return busy;
}

/**
 * For one and for three replicas: the figures of real runs (medians), of the simulator, and its error in each.
 * @param calibrated resolves with a calibration of this machine; asked before each run and after the last
 */
export async function validate(calibrated, { runs, progress }) {
  if (!findProxy("haproxy"))
    throw new SetupError("The validation needs HAProxy (Debian: haproxy).");
  const calibrations = [await calibrated()];
  const model = await modelOf(calibrations[0].shape);
  const measured = { 1: [], 3: [] };
  let busy = false;
  for (let run = 1; run <= runs; run++) {
    progress(`run ${run} of ${runs}`);
    busy = (await runEach(model, measured, progress)) || busy;
    calibrations.push(await calibrated());
  }
  const calibration = averageOf(calibrations);
  const [{ turns }] = measured[1];
  const sharedTokens = sharedTokensOf(turns);
  const sessions = sessionsOf(turns, load, sharedTokens);
  const compared = [1, 3].map((count) => {
    const real = medians(measured[count].map((run) => figuresOf(run.turns, run.rows)));
    const { figures: simulated, spread } = simulatedRun(calibration, sessions, count);
    progress(`simulated, ${count}: turns by replica ${spread}`);
    const errors = Object.fromEntries(
      Object.keys(real).map((name) => [name, simulated[name] / real[name] - 1]),
    );
    return { replicas: count, real, simulated, errors };
  });
  busy ||= calibration.busy;
  return { busy, load, runs, sharedTokens, sessions, compared, calibration };
}
