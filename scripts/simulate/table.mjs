import { agentSessions } from "./load/agents.mjs";
import { breaksFirst, limitsOf } from "./load/limits.mjs";
import { ServiceTimes } from "./model/service-times.mjs";
import { computedRows, leastRows, summarize } from "./report/summary.mjs";
import { simulateReplicas } from "./simulate-replicas.mjs";

const seed = 18;
/** Of the time that a session's turns take alone on a replica which has its prefix. */
const utilization = 0.7;
const engine = { contextSize: 8192, ramBytes: 4096 * 2 ** 20 };
/** Turns that were sent before this are not counted: caches and queues are filling. */
const warmMs = 120_000;

const mib = 2 ** 20;

/** What each size is simulated with; `most` replicas for what needs no more to be seen, or takes long. */
const cases = [
  { name: "least loaded", router: "leastLoaded" },
  {
    name: "least loaded, remote cache",
    router: "leastLoaded",
    part: "remote",
    remote: true,
    engine: { diskBytes: 2 ** 40 },
    most: 30,
  },
  { name: "affinity", router: "affinity" },
  { name: "affinity with a bound", router: "bounded" },
  {
    name: "the same, 512 MiB and files",
    router: "bounded",
    part: "disk",
    engine: { ramBytes: 512 * mib, diskBytes: 2 ** 36 },
    most: 10,
  },
  {
    name: "the same, each dies once in 10 minutes",
    router: "bounded",
    deaths: { meanLifeMs: 600_000, restartMs: 20_000, seed },
    least: 3,
    most: 100,
  },
];

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Long enough for tails; fewer replicas have fewer turns in a minute. */
function measuredMs(replicas) {
  if (replicas <= 30) return 1_080_000;
  return replicas <= 100 ? 300_000 : 150_000;
}

/** New sessions a minute of which one replica is busy as long as `utilization` says. */
export function sessionsPerMinute(calibration) {
  const times = new ServiceTimes(calibration);
  const sample = agentSessions({ seed, perMinute: 60, lengthMs: 600_000, ...engine });
  const alone = sum(sample.map((session) => sessionMs(times, session))) / sample.length;
  return (utilization * 60_000) / alone;
}

function sessionMs(times, { steps, sharedTokens }) {
  let promptTokens = 0;
  return sum(
    steps.map(({ freshTokens, generatedTokens }, index) => {
      promptTokens += freshTokens;
      const rows = index === 0 ? freshTokens - sharedTokens : freshTokens + 1;
      const ms = times.turnMs({ rows, promptTokens, generatedTokens });
      promptTokens += generatedTokens;
      return ms;
    }),
  );
}

/** @param setting one of `cases`, or the like */
export function simulateSize(calibration, setting, { replicas: count, perMinute, lastsMs }) {
  const untilMs = warmMs + lastsMs;
  const load = { seed, perMinute: perMinute * count, lengthMs: untilMs, ...engine };
  const sessions = agentSessions(load);
  const { disk } = calibration.parts ?? {};
  const options = { ...engine, ...(disk && { disk }), ...setting.engine };
  const run = simulateReplicas(
    calibration,
    { ...setting, replicas: count, untilMs, engine: options },
    (clients) => clients.arrive(sessions),
  );
  const { turns, lost } = run.clients;
  const shares = run.replicas.map(({ computedMs }) => computedMs / untilMs);
  const counts = run.replicas.map((replica) => replica.counts());
  const figures = {
    ...summarize(
      turns.filter(({ sentAt }) => sentAt >= warmMs),
      lastsMs / 1000,
    ),
    turnsPerMinute: (60_000 * turns.filter(({ endedAt }) => endedAt >= warmMs).length) / lastsMs,
    rowsOverLeast: computedRows(turns) / leastRows(turns),
    busy: sum(shares) / count,
    busiest: Math.max(...shares),
    ramMiB: sum(counts.map(({ ramBytes }) => ramBytes)) / count / mib,
    diskMiB: sum(counts.map(({ diskBytes }) => diskBytes)) / count / mib,
    lost,
    ...(run.sharedFiles && { remoteBusy: run.sharedFiles.busyMs() / untilMs }),
  };
  const limits = limitsOf(calibration, figures);
  return {
    replicas: count,
    setting: setting.name,
    ...figures,
    limits,
    breaksFirst: breaksFirst(limits),
  };
}

/** The figures of each size with each routing. */
export function simulateTable(calibration, sizes, progress) {
  const perMinute = sessionsPerMinute(calibration);
  const possible = cases.filter(({ part }) => !part || calibration.parts?.[part]);
  const rows = sizes.flatMap((replicas) =>
    possible
      .filter(({ least = 1, most = Infinity }) => replicas >= least && replicas <= most)
      .map((setting) => {
        progress(`${replicas} replicas, ${setting.name}`);
        const size = { replicas, perMinute, lastsMs: measuredMs(replicas) };
        return simulateSize(calibration, setting, size);
      }),
  );
  const { machine, shape, date } = calibration;
  return { machine, shape, date, perMinute, rows };
}
