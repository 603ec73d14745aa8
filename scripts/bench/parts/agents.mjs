import { runAgents } from "../agents/run-agents.mjs";
import { summarizeAgents } from "../agents/summarize.mjs";
import { chosen } from "./chosen.mjs";
import { medians } from "../report/statistics.mjs";
import { contestants } from "../servers/contestants.mjs";
import { readStepMetrics } from "../servers/step-metrics.mjs";

const fullLoad = { agents: 8, turns: 4, turnTokens: 64, toolMs: 200 };
const quickLoad = { agents: 2, turns: 2, turnTokens: 8, toolMs: 50 };

/** A fresh server for each run, so that no run finds the prefix in the cache. */
async function runOnce(contestant, context, load) {
  const server = await contestant.start(context);
  try {
    let turns = 0;
    const onTurn = () => {
      turns += 1;
      if (turns % load.agents === 0) context.progress(`  ${turns} turns`);
    };
    return await server.during(async (url) => {
      const summary = summarizeAgents(await runAgents(url, load, onTurn));
      return contestant.isFermata ? { ...summary, ...(await readStepMetrics(url)) } : summary;
    });
  } finally {
    await server.stop();
  }
}

/** The design's agent load over HTTP: Fermata and llama-server, as they come and tuned. */
export async function measureAgents(context) {
  const { runs, progress, quick, only } = context;
  const load = quick ? quickLoad : fullLoad;
  const measured = chosen(contestants, only);
  const results = new Map(measured.map(({ name }) => [name, []]));
  for (let run = 1; run <= runs; run++) {
    for (const contestant of measured) {
      progress(`agent load, run ${run} of ${runs}: ${contestant.name}`);
      const result = await runOnce(contestant, context, load);
      const resume = (result.resumeTtftP50 / 1000).toFixed(2);
      progress(`  ${result.turnsPerMinute.toFixed(1)} turns a minute, resume TTFT ${resume} s`);
      results.get(contestant.name).push(result);
    }
  }
  return measured.map(({ name, isFermata, flags }) => ({
    name,
    isFermata,
    flags,
    median: medians(results.get(name)),
    runs: results.get(name),
  }));
}
