import { quantile } from "../report/statistics.mjs";

const sum = (values) => values.reduce((total, value) => total + value, 0);

/**
 * Prefilled rows over new tokens. A turn's new tokens are those without a row in the cache: the
 * result, the template's glue around it, and the last token of the answer before, which was sampled
 * but never computed.
 */
function rePrefillOfResumes(agents) {
  const resumes = agents.flatMap((turns) =>
    turns.slice(1).map((turn, index) => ({
      prefilled: turn.promptTokens - turn.cachedTokens,
      fresh: turn.promptTokens - turns[index].promptTokens - turns[index].generatedTokens + 1,
    })),
  );
  return sum(resumes.map((it) => it.prefilled)) / sum(resumes.map((it) => it.fresh));
}

/** The figures of one run of the agent load; times in milliseconds. */
export function summarizeAgents({ seconds, agents }) {
  const turns = agents.flat();
  const gaps = turns.flatMap((turn) => turn.gaps);
  const first = turns.filter(({ turn }) => turn === 0).map(({ ttft }) => ttft);
  const resumed = turns.filter(({ turn }) => turn > 0).map(({ ttft }) => ttft);
  return {
    seconds,
    turnsPerMinute: (60 * turns.length) / seconds,
    ttftP50: quantile(first, 0.5),
    resumeTtftP50: quantile(resumed, 0.5),
    resumeTtftP99: quantile(resumed, 0.99),
    interTokenP50: quantile(gaps, 0.5),
    interTokenP99: quantile(gaps, 0.99),
    rePrefillRatio: rePrefillOfResumes(agents),
    promptTokens: sum(turns.map((turn) => turn.promptTokens)),
    prefilledTokens: sum(turns.map((turn) => turn.promptTokens - turn.cachedTokens)),
    generatedTokens: sum(turns.map((turn) => turn.generatedTokens)),
  };
}
