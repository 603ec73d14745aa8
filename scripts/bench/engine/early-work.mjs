import { measureSubAgentsAnswer } from "./early-answers.mjs";
import { measureReadOnlyTools, measureToldResult } from "./early-results.mjs";

const cases = {
  told: measureToldResult,
  answer: measureSubAgentsAnswer,
  readOnly: measureReadOnlyTools,
};

/** What early work saves in one case, `load.case`: a row, and what the engine counted. */
export async function measureEarlyWork(Engine, options, load) {
  const engine = await Engine.load({ ...options, contextSize: 4096, parallel: 2 });
  const measure = cases[load.case];
  await measure(engine, { words: 50, runs: 1 });
  const row = await measure(engine, load);
  const { extendedTokens, discardedTokens, recomputedTokens } = engine.stats();
  await engine.close();
  return { row, counts: { extendedTokens, discardedTokens, recomputedTokens } };
}
