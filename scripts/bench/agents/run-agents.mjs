import { streamChat } from "./stream-chat.mjs";
import { system, taskOf, toolResult, tools } from "./dialogue.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * One agent's turns. The model's weights are random, so it calls no tool by itself: each answer
 * counts as a call of 64 tokens, and the result comes as the next message. To the engine that is the
 * work of a client-driven tool loop.
 */
async function runAgent(url, agent, { turns, turnTokens, toolMs }, onTurn) {
  const messages = [
    { role: "system", content: system },
    { role: "user", content: taskOf(agent) },
  ];
  const done = [];
  for (let turn = 0; turn < turns; turn++) {
    const body = { messages, tools, max_tokens: turnTokens, temperature: 0 };
    const { text, usage, ttft, gaps } = await streamChat(url, body);
    done.push({
      turn,
      ttft,
      gaps,
      promptTokens: usage.prompt_tokens,
      generatedTokens: usage.completion_tokens,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    });
    onTurn();
    messages.push({ role: "assistant", content: text });
    if (turn === turns - 1) break;
    await sleep(toolMs);
    messages.push({ role: "user", content: toolResult(agent, turn) });
  }
  return done;
}

/** Runs all agents side by side; returns { seconds, agents } with each agent's turns. */
export async function runAgents(url, load, onTurn) {
  const start = performance.now();
  const agents = await Promise.all(
    Array.from({ length: load.agents }, (_, agent) => runAgent(url, agent, load, onTurn)),
  );
  return { seconds: (performance.now() - start) / 1000, agents };
}
