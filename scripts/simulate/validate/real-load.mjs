// The agent load of scripts/bench/replicas.mjs with streams, so that the time to the first token is known.
import { toolResult, tools } from "../../bench/agents/dialogue.mjs";
import { streamChat } from "../../bench/agents/stream-chat.mjs";
import { opening } from "../../bench/replicas/load.mjs";
import { prefixKey } from "../model/hash-ring.mjs";

/** Between an answer and the next turn. */
export const toolMs = 100;
const answerTokens = 64;

async function runAgent(url, agent, { rounds, kinds }, turns, begun) {
  const messages = opening(agent, kinds);
  for (let round = 0; round < rounds; round++) {
    const sentAt = performance.now() - begun;
    const body = { model: "default", messages, tools, max_tokens: answerTokens, temperature: 0 };
    const { text, usage, ttft, replica } = await streamChat(url, body);
    turns.push({
      agent,
      round,
      replica,
      sentAt,
      firstAt: sentAt + ttft,
      endedAt: performance.now() - begun,
      promptTokens: usage.prompt_tokens,
      generatedTokens: usage.completion_tokens,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    });
    messages.push(
      { role: "assistant", content: text },
      { role: "user", content: toolResult(agent, round) },
    );
    await new Promise((resolve) => setTimeout(resolve, toolMs));
  }
}

/** Resolves with every turn, in the order of their ends; times in milliseconds since the beginning. */
export async function runRealLoad(url, load) {
  const turns = [];
  const begun = performance.now();
  let next = 0;
  const client = async () => {
    while (next < load.agents) await runAgent(url, next++, load, turns, begun);
  };
  await Promise.all(Array.from({ length: load.atOnce }, client));
  return turns;
}

/** The same agents for the simulator. `turns`: of a real run, whose lengths are taken. */
export function sessionsOf(turns, load, sharedTokens) {
  return Array.from({ length: load.agents }, (_, agent) => {
    const own = turns.filter((turn) => turn.agent === agent).toSorted((a, b) => a.round - b.round);
    let before = 0;
    const steps = own.map(({ promptTokens, generatedTokens }) => {
      const freshTokens = promptTokens - before;
      before = promptTokens + generatedTokens;
      return { freshTokens, generatedTokens, toolMs };
    });
    const kind = agent % load.kinds;
    const prefix = prefixKey(opening(agent, load.kinds)[0].content);
    return { prefix, prefixSeed: 1 + kind, sharedTokens, seed: 1000 + agent, steps };
  });
}
