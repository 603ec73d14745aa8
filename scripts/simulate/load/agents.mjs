// The agents of the table: sessions with heavy tails, in the manner of Mooncake's trace of tools and agents.
import { prefixKey } from "../model/hash-ring.mjs";
import { Random } from "../model/random.mjs";

/** Every parameter of the load, with where it comes from. */
export const load = {
  /**
   * Kinds of agents, each with a system prompt of its own, and how unevenly they are used: Zipf. Assumed: 40 products or
   * teams, of which the first has 23 % of all sessions.
   */
  kinds: 40,
  kindPower: 1,
  /** tau-bench, airline: a system prompt of 6,155 characters; its tools about as much again. Tokens of 4 characters. */
  sharedTokens: { median: 3000, spread: 0.3, most: 5000 },
  /** tau-bench, airline, 200 dialogues of gpt-4o: 11 answers in the median, 20 at p90, 30 at p99. */
  turns: { median: 11, spread: 0.47, most: 40 },
  /** The first message of a user, with what an agent puts around it. Assumed. */
  taskTokens: { median: 250, spread: 0.8, most: 2000 },
  /** tau-bench: results and users' messages of 115 characters in the median, 836 at p90, 2,710 at p99. */
  resultTokens: { median: 45, spread: 1.35, most: 2000 },
  /** tau-bench: answers with their calls of 215 characters in the median, 533 at p90, 933 at p99. */
  answerTokens: { median: 60, spread: 0.65, most: 400 },
  /** Half of all tools take under 2 s, one in ten over 6 s, one in a hundred over 30 s; the retention bench's tail, cut later. */
  toolMs: { least: 1200, shape: 1.43, most: 120_000 },
};

const clamped = (value, most = Infinity) => Math.max(1, Math.min(Math.round(value), most));

function tokens(random, { median, spread, most }) {
  return clamped(random.logNormal(median, spread), most);
}

/** The system prompts of all kinds have lengths of their own, the same in every run. */
function prefixes() {
  const random = new Random(7);
  return Array.from({ length: load.kinds }, (_, kind) => ({
    prefix: prefixKey(`You are of kind ${kind}.`),
    prefixSeed: 1 + kind,
    sharedTokens: tokens(random, load.sharedTokens),
  }));
}

function stepOf(random, freshTokens) {
  return {
    freshTokens,
    generatedTokens: tokens(random, load.answerTokens),
    toolMs: Math.min(random.pareto(load.toolMs.least, load.toolMs.shape), load.toolMs.most),
  };
}

/** What fits `contextSize`, without end. */
function sessionOf(random, prefix, seed, contextSize) {
  const steps = [stepOf(random, prefix.sharedTokens + tokens(random, load.taskTokens))];
  const turns = tokens(random, load.turns);
  let used = steps[0].freshTokens + steps[0].generatedTokens;
  while (steps.length < turns) {
    const step = stepOf(random, tokens(random, load.resultTokens));
    used += step.freshTokens + step.generatedTokens;
    if (used >= contextSize) break;
    steps.push(step);
  }
  return { ...prefix, seed, steps };
}

/**
 * Sessions that begin at random moments of `lengthMs`, `perMinute` of them on average.
 * Each is { prefix, prefixSeed, sharedTokens, seed, startMs, steps: [{ freshTokens, generatedTokens, toolMs }] }.
 */
export function agentSessions({ seed, perMinute, lengthMs, contextSize }) {
  const random = new Random(seed);
  const kinds = prefixes();
  const sessions = [];
  for (let startMs = 0; ;) {
    startMs += random.exponential(60_000 / perMinute);
    if (startMs > lengthMs) return sessions;
    const prefix = kinds[random.zipf(load.kinds, load.kindPower)];
    const session = sessionOf(random, prefix, 1000 + sessions.length, contextSize);
    sessions.push({ ...session, startMs });
  }
}
