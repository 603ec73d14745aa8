import { readFileSync } from "node:fs";
// The simulator of replicas: the scheduler that serves, in simulated time.
import { expect, test } from "vitest";
import { agentSessions } from "../../scripts/simulate/load/agents.mjs";
import {
  type Calibration,
  type Session,
  simulateReplicas,
} from "../../scripts/simulate/simulate-replicas.mjs";

/** A pass takes a millisecond for each row, and 175 tokens are copied to another slot in one. */
const calibration: Calibration = {
  machine: { cores: 2 },
  passes: [
    { rows: 1, ms: 1 },
    { rows: 512, ms: 512 },
  ],
  attention: { decodeMs: 0, chunkMs: 0 },
  movedBytesPerMs: 7_884_800,
  slowdowns: { chunk: [[1]], decode: [[1]] },
  request: { fixedMs: 0, tokenMs: 0 },
  token: { sentMs: 0 },
  engine: {
    parallel: 2,
    slots: 4,
    contextSize: 8192,
    stepTokenBudget: 512,
    microBatch: 512,
    targetItlMs: 0,
    ramBytes: 64 * 2 ** 20,
    diskBytes: 0,
    bytesPerToken: 22_528,
  },
};

function session(seed: number, steps: Session["steps"]): Session {
  return { prefix: "kind", prefixSeed: 1, sharedTokens: 100, seed, steps };
}

// 100 shared and 50 own tokens: the first token comes after 150 ms, three more take 1 ms each. The second turn comes at
// 153 + 47 with 20 new tokens; the last token of the answer was never computed: 21 rows, then one more token. The other
// conversation has the first one's prefix, which is copied with its slot's 175 tokens: 1 ms, 30 rows, and one token.
test("one replica, by hand", () => {
  const first = session(1000, [
    { freshTokens: 150, generatedTokens: 4, toolMs: 47 },
    { freshTokens: 20, generatedTokens: 2, toolMs: 0 },
  ]);
  const second = session(1001, [{ freshTokens: 130, generatedTokens: 2, toolMs: 0 }]);
  const { clients, replicas } = simulateReplicas(
    calibration,
    { replicas: 1, router: "bounded" },
    (all) => all.keep(1, [first, second]),
  );
  const times = clients.turns.map(({ sentAt, reused, firstAt, endedAt }) => [
    sentAt,
    reused,
    firstAt,
    endedAt,
  ]);
  expect(times).toEqual([
    [0, 0, 150, 153],
    [200, 153, 221, 222],
    [222, 100, 253, 254],
  ]);
  expect(replicas[0]!.counts()).toMatchObject({ promptTokens: 454, prefilledTokens: 201 });
});

// Alone a chunk of 150 rows takes 150 ms and a decode 1 ms, and a token is sent in 1 ms by one thread. Of what is computed
// each replica beside another takes its share; of what is sent, where three replicas have two cores.
test.each([
  { replicas: 1, first: 151, ended: 157 },
  { replicas: 2, first: 301, ended: 310 },
  { replicas: 3, first: 451.5, ended: 465 },
])("tokens are sent on a core of their own while there is one: $replicas replicas", (row) => {
  const steps = [{ freshTokens: 150, generatedTokens: 4, toolMs: 0 }];
  const sessions = Array.from({ length: row.replicas }, (_, index) => session(1000 + index, steps));
  const byShare = [[1, 2, 3], [2, 3], [3]];
  const { clients } = simulateReplicas(
    {
      ...calibration,
      slowdowns: { chunk: byShare, decode: byShare },
      token: { sentMs: 1 },
    },
    { replicas: row.replicas, router: "leastLoaded", sharedHost: true },
    (all) => all.keep(row.replicas, sessions),
  );
  for (const { firstAt, endedAt } of clients.turns) {
    expect(firstAt).toBeCloseTo(row.first, 9);
    expect(endedAt).toBeCloseTo(row.ended, 9);
  }
  expect(clients.turns).toHaveLength(row.replicas);
});

const load = { seed: 3, perMinute: 12, lengthMs: 60_000, contextSize: 8192 };

function runWith(options: Partial<Parameters<typeof simulateReplicas>[1]>) {
  const sessions = agentSessions(load);
  const { clients, simulation } = simulateReplicas(
    calibration,
    { replicas: 3, router: "bounded", ...options },
    (all) => all.arrive(sessions),
  );
  const turns = clients.turns.map(
    ({ session: { seed }, index, replica, sentAt, reused, firstAt, endedAt }) =>
      [seed, index, replica.name, sentAt, reused, firstAt, endedAt].join(" "),
  );
  return { sessions, turns, clients, now: simulation.now };
}

test("the same seed gives the same turns to the last digit", () => {
  expect(runWith({}).turns).toEqual(runWith({}).turns);
});

test.each(["leastLoaded", "affinity", "bounded"] as const)(
  "with %s each turn of each session ends once, also where replicas die",
  (router) => {
    const deaths = { meanLifeMs: 20_000, restartMs: 5000, seed: 1 };
    const { sessions, clients } = runWith({ router, deaths, untilMs: 3_600_000 });
    const ended = clients.turns.map(({ session: { seed }, index }) => `${seed} ${index}`);
    const expected = sessions.flatMap(({ seed, steps }) =>
      steps.map((_, index) => `${seed} ${index}`),
    );
    expect(ended.toSorted()).toEqual(expected.toSorted());
    expect(clients.lost).toBeGreaterThan(0);
  },
);

test("what one replica computed is read by another from the cache that they share", () => {
  const steps = Array.from({ length: 6 }, (_, index) => ({
    freshTokens: index === 0 ? 1500 : 50,
    generatedTokens: 10,
    toolMs: 8000,
  }));
  const sessions = [1000, 1001, 1002].map((seed) => session(seed, steps));
  const rowsWith = (remote: boolean): number => {
    const { replicas } = simulateReplicas(
      {
        ...calibration,
        parts: { remote: { readBytesPerMs: 1e6, writeBytesPerMs: 1e6, latencyMs: 1 } },
      },
      {
        replicas: 2,
        router: "leastLoaded",
        remote,
        engine: { diskBytes: remote ? 2 ** 30 : 0 },
      },
      (all) => all.keep(3, sessions),
    );
    return replicas.reduce((sum, replica) => sum + replica.counts()["prefilledTokens"]!, 0);
  };
  expect(rowsWith(true)).toBeLessThan(0.9 * rowsWith(false));
});

test("the calibration that stands in the repository has what the simulator reads", () => {
  const file = new URL("../../scripts/simulate/calibration.json", import.meta.url);
  const measured = JSON.parse(readFileSync(file, "utf8")) as Calibration;
  const sessions = [1, 2, 3].map((seed) =>
    session(seed, [{ freshTokens: 600, generatedTokens: 8, toolMs: 0 }]),
  );
  for (const sharedHost of [false, true]) {
    const { clients } = simulateReplicas(
      measured,
      { replicas: 3, router: "leastLoaded", sharedHost },
      (all) => all.keep(3, sessions),
    );
    expect(clients.turns.map(({ endedAt }) => endedAt > 0)).toEqual([true, true, true]);
  }
});
