import { quantile } from "../../bench/report/statistics.mjs";

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Every token once: each prefix once in all, then what each turn brings, and the last token of the answer before it. */
export function leastRows(turns) {
  const sessions = new Map(turns.map(({ session }) => [session, session]));
  const prefixes = new Map();
  for (const { prefix, sharedTokens } of sessions.values()) prefixes.set(prefix, sharedTokens);
  const own = turns.map(({ index, freshTokens, sharedTokens }) =>
    index === 0 ? freshTokens - sharedTokens : freshTokens + 1,
  );
  return sum([...prefixes.values()]) + sum(own);
}

/** Rows of prompts that were computed. */
export function computedRows(turns) {
  return sum(turns.map(({ promptTokens, reused }) => promptTokens - reused));
}

/** The figures of turns, their times in milliseconds and `seconds` the time in which they ended. */
export function summarize(turns, seconds) {
  const ttfts = turns.map(({ sentAt, firstAt }) => firstAt - sentAt);
  const waits = turns.map(({ sentAt, admittedAt }) => admittedAt - sentAt);
  const lengths = turns.map(({ sentAt, endedAt }) => endedAt - sentAt);
  const rows = computedRows(turns);
  return {
    turns: turns.length,
    seconds,
    turnsPerMinute: (60 * turns.length) / seconds,
    ttftP50: quantile(ttfts, 0.5),
    ttftP95: quantile(ttfts, 0.95),
    ttftP99: quantile(ttfts, 0.99),
    answerP50: quantile(lengths, 0.5),
    answerP95: quantile(lengths, 0.95),
    waitP95: quantile(waits, 0.95),
    hitRate: 1 - rows / sum(turns.map(({ promptTokens }) => promptTokens)),
  };
}
