import { streamChat } from "../agents/stream-chat.mjs";
import { startProcess } from "../processes.mjs";
import { medians } from "../report/statistics.mjs";
import { fermata, llamaServer } from "../servers/contestants.mjs";

/** Busy processes: none, one, as many as a small machine has cores, many. */
const loads = [0, 1, 2, 7];

const flags = ["--store", "none"];
const contestants = [
  { name: "fermata", on: fermata("as it comes", flags), ownThreads: true },
  { name: "oneThread", on: fermata("one thread", [...flags, "--threads", "1"]), ownThreads: true },
  { name: "peer", on: llamaServer("as it comes", []) },
  { name: "peerOneThread", on: llamaServer("one thread", []), threads: 1 },
];

/** Runs `action` beside processes that each keep a core busy, as a user's compiler or tests do. */
async function beside(count, action) {
  const others = Array.from({ length: count }, () =>
    startProcess(process.execPath, ["-e", "for (;;);"]),
  );
  try {
    return await action();
  } finally {
    for (const { child } of others) child.kill("SIGKILL");
    await Promise.all(others.map(({ closed }) => closed));
  }
}

const body = (tokens) => ({
  messages: [{ role: "user", content: "Tell me a story about a lantern." }],
  temperature: 0,
  max_tokens: tokens,
});

/** Tokens a second of one sequence, from the request on: all of its prompt but a row is in the cache. */
async function decodeRate(url, tokens) {
  const start = performance.now();
  const { usage } = await streamChat(url, body(tokens));
  return usage.completion_tokens / ((performance.now() - start) / 1000);
}

/** Decode of one sequence beside busy processes, by Fermata and llama-server as they come and on one thread. */
export async function measureBusy({ model, threads, quick, runs, progress }) {
  const tokens = quick ? 8 : 64;
  const cells = loads.map((processes) => ({ processes, runs: [] }));
  for (let run = 1; run <= runs; run++) {
    const rates = cells.map(() => ({}));
    for (const { name, on, ownThreads, threads: given = threads } of contestants) {
      const server = await on.start({ model, threads: ownThreads ? undefined : given });
      try {
        for (const [index, { processes }] of cells.entries()) {
          progress(`${on.name}, ${processes} busy processes, run ${run} of ${runs}`);
          rates[index][name] = await beside(processes, () =>
            server.during(async (url) => {
              // From which the engine learns what the cores do.
              await decodeRate(url, tokens / 2);
              return await decodeRate(url, tokens);
            }),
          );
        }
      } finally {
        await server.stop();
      }
    }
    for (const [index, cell] of cells.entries()) cell.runs.push(rates[index]);
  }
  return cells.map((cell) => ({ ...cell, median: medians(cell.runs) }));
}
