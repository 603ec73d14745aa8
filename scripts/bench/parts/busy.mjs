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

/** Decode of one sequence on all threads and on one, alone and beside busy processes, against llama-bench. */
export async function measureBusy({ model, threads, quick, runs, progress }) {
  const load = { model, depths: [0], prefillTokens: 16, decodeTokens: quick ? 8 : 48 };
  const cells = [...new Set([threads, 1])].flatMap((each) =>
    [0, 1, 2].map((processes) => ({ threads: each, processes, fermata: [], peer: [] })),
  );
  for (let run = 1; run <= runs; run++) {
    for (const cell of cells) {
      progress(`${cell.threads} threads, ${cell.processes} busy processes, run ${run} of ${runs}`);
      const sized = { ...load, threads: cell.threads };
      const [peer, fermata] = await beside(cell.processes, async () => [
        await runLlamaBench({ ...sized, setting }),
        await runEngine("single", { ...sized, setting: { flashAttention: "off" } }),
      ]);
      cell.peer.push(peer[0]);
      cell.fermata.push(fermata[0]);
    }
  }
  return cells.map((cell) => ({
    ...cell,
    fermata: medians(cell.fermata),
    peer: medians(cell.peer),
    runs: { fermata: cell.fermata, peer: cell.peer },
  }));
}
