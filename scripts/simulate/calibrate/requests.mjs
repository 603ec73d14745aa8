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

/** The time between two tokens of each of `sequences` answers side by side, and the tokens before them. */
async function gapMs(url, sequences, words) {
  const one = async (agent) => {
    const messages = [{ role: "user", content: wordsFrom(50 + agent, words) }];
    return streamChat(url, { messages, tools, max_tokens: 64, temperature: 0 });
  };
  const answers = await Promise.all(Array.from({ length: sequences }, (_, agent) => one(agent)));
  return {
    ms: median(answers.flatMap(({ gaps }) => gaps)),
    promptTokens: answers[0].usage.prompt_tokens,
  };
}

/** @param steps what steps take alone: { passes, attention } */
export async function measureRequests(url, { parallel }, { passes, attention }) {
  const decodeMs = (rows, depth) =>
    passes.find((pass) => pass.rows === rows).ms + rows * depth * attention.decodeMs;
  await cachedTtft(url, 10);
  const [short, long] = [await cachedTtft(url, 20), await cachedTtft(url, 2500)];
  const around = ({ ms, promptTokens }) => ms - decodeMs(1, promptTokens);
  const more = long.promptTokens - short.promptTokens;
  const tokenMs = Math.max((around(long) - around(short)) / more, 0);
  const fixedMs = Math.max(around(short) - tokenMs * short.promptTokens, 0);
  await gapMs(url, parallel, 40);
  const gaps = [];
  for (let time = 0; time < 5; time++) gaps.push(await gapMs(url, parallel, 41 + time));
  const gap = gaps.toSorted((a, b) => a.ms - b.ms)[2];
  const sentMs = Math.max((gap.ms - decodeMs(parallel, gap.promptTokens + 32)) / parallel, 0);
  return { request: { fixedMs, tokenMs }, token: { sentMs } };
}
