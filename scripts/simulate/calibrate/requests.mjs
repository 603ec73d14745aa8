// What a server does around the engine's steps, measured from outside.
import { system, tools, wordsFrom } from "../../bench/agents/dialogue.mjs";
import { streamChat } from "../../bench/agents/stream-chat.mjs";

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** The time to the first token of a prompt that is all in the cache but for its last token. */
async function cachedTtft(url, words) {
  const messages = [
    { role: "system", content: `${system} ${wordsFrom(words, words)}` },
    { role: "user", content: wordsFrom(3, 30) },
  ];
  const body = { messages, tools, max_tokens: 1, temperature: 0 };
  const first = await streamChat(url, body);
  const ttfts = [];
  for (let time = 0; time < 9; time++) ttfts.push((await streamChat(url, body)).ttft);
  return { ms: median(ttfts), promptTokens: first.usage.prompt_tokens };
}

/** The time between two tokens of each of `sequences` answers side by side. */
async function gapMs(url, sequences, words) {
  const one = async (agent) => {
    const content = wordsFrom(50 + agent, words);
    const messages = [{ role: "user", content }];
    return (await streamChat(url, { messages, tools, max_tokens: 64, temperature: 0 })).gaps;
  };
  const gaps = await Promise.all(Array.from({ length: sequences }, (_, agent) => one(agent)));
  return median(gaps.flat());
}

/** @param passMs what a pass of so many rows takes alone */
export async function measureRequests(url, { parallel }, { passes }) {
  await cachedTtft(url, 10);
  const short = await cachedTtft(url, 20);
  const long = await cachedTtft(url, 2500);
  const tokenMs = Math.max((long.ms - short.ms) / (long.promptTokens - short.promptTokens), 0);
  const fixedMs = Math.max(short.ms - passes[0].ms - tokenMs * short.promptTokens, 0);
  const together = passes.find(({ rows }) => rows === parallel).ms;
  await gapMs(url, parallel, 40);
  const sentMs = Math.max(((await gapMs(url, parallel, 41)) - together) / parallel, 0);
  return { request: { fixedMs, tokenMs }, token: { sentMs } };
}
