// Where the parts that replicas share come to their end: shares of what was measured of each, 1 is all of it.

/** A replica or a part above this has no room for a bad minute. */
const full = 0.9;

/** @param figures of a simulated size. Postgres: commits; the proxy: one core of it. */
export function limitsOf({ parts }, { turnsPerMinute, busy, busiest, remoteBusy = 0 }) {
  const turnsPerSecond = turnsPerMinute / 60;
  const { postgres, proxy } = parts ?? {};
  return {
    replicas: busy,
    hottest: busiest,
    postgres: postgres ? (turnsPerSecond * postgres.commitsPerTurn) / postgres.commitsPerSecond : 0,
    proxy: proxy ? (turnsPerSecond * proxy.cpuMsPerRequest) / 1000 : 0,
    remote: remoteBusy,
  };
}

const names = {
  replicas: "every replica",
  hottest: "the replica of a hot prefix",
  postgres: "Postgres' commits",
  proxy: "the proxy's core",
  remote: "the remote cache's link",
};

/** The parts that are full, the one that is used most first; nothing where there are none. */
export function breaksFirst({ replicas, hottest, ...parts }) {
  // Where all replicas are full, the busiest one says nothing more.
  const engine = replicas >= full ? { replicas } : { hottest };
  return Object.entries({ ...engine, ...parts })
    .filter(([, use]) => use >= full)
    .toSorted((a, b) => b[1] - a[1])
    .map(([part]) => names[part])
    .join(", ");
}
