import { runEngine } from "../engine/run-engine.mjs";
import { runLlamaBench } from "../peers/llama-bench.mjs";
import { startProcess } from "../processes.mjs";
import { medians } from "../report/statistics.mjs";

const setting = { flashAttention: false, cacheTypeK: "f16", cacheTypeV: "f16" };

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

/** Processes beside: none, one, one for each of two cores, more than a small machine has cores. */
const loads = [0, 1, 2, 7];

/** Decode of one sequence beside busy processes: as the engine comes, on one thread, and llama-bench. */
export async function measureBusy({ model, threads, quick, runs, progress }) {
  const load = { model, depths: [0], prefillTokens: 16, decodeTokens: quick ? 8 : 96 };
  const cells = loads.map((processes) => ({ processes, fermata: [], oneThread: [], peer: [] }));
  for (let run = 1; run <= runs; run++) {
    for (const cell of cells) {
      progress(`${cell.processes} busy processes, run ${run} of ${runs}`);
      const measured = await beside(cell.processes, async () => [
        await runEngine("single", { ...load, setting: {} }),
        await runEngine("single", { ...load, setting: { threads: 1 } }),
        await runLlamaBench({ ...load, threads, setting }),
      ]);
      const [fermata, oneThread, peer] = measured.map(([only]) => only);
      cell.fermata.push(fermata);
      cell.oneThread.push(oneThread);
      cell.peer.push(peer);
    }
  }
  return cells.map(({ processes, ...runsOf }) => ({
    processes,
    ...Object.fromEntries(Object.entries(runsOf).map(([name, all]) => [name, medians(all)])),
    runs: runsOf,
  }));
}
