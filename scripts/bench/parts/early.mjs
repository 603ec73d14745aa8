import { runEngine } from "../engine/run-engine.mjs";

/** Tool results prefilled as they are told, and tools that start early: with a fake tool, in one process. */
export async function measureEarly({ model, threads, quick, runs, progress }) {
  const load = { model, threads, resultWords: quick ? [100] : [300, 1200], runs: quick ? 1 : runs };
  progress("early results");
  const { rows, ...counts } = await runEngine("early", load);
  progress(`  ${JSON.stringify(counts)}`);
  return rows;
}
