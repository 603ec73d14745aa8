import { streamChat } from "../agents/stream-chat.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * One agent through its trajectory. The server's own answers become its history, so every server
 * reads what it wrote. Each turn is told to `onTurn` when it ends.
 */
async function replayOne(url, agent, { messages, steps }, turnTokens, onTurn) {
  const history = [...messages];
  for (let turn = 0; ; turn++) {
    const started = performance.now();
    const body = { messages: history, max_tokens: turnTokens, temperature: 0 };
    const { text, usage, ttft } = await streamChat(url, body);
    onTurn({
      agent,
      turn,
      started,
      ttft,
      promptTokens: usage.prompt_tokens,
      generatedTokens: usage.completion_tokens,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    });
    if (turn === steps.length) return;
    history.push({ role: "assistant", content: text });
    await sleep(steps[turn].toolMs);
    history.push({ role: "user", content: steps[turn].text });
  }
}

/** Replays all trajectories side by side. Returns { seconds, turns } with the turns in the order of their start. */
export async function replay(url, trajectories, turnTokens, onTurn) {
  const begun = performance.now();
  const turns = [];
  const keep = (turn) => {
    turns.push(turn);
    onTurn(turns.length);
  };
  await Promise.all(
    trajectories.map((trajectory, agent) => replayOne(url, agent, trajectory, turnTokens, keep)),
  );
  const seconds = (performance.now() - begun) / 1000;
  return { seconds, turns: turns.toSorted((a, b) => a.started - b.started) };
}
