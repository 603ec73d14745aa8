import { wordsFrom } from "../agents/dialogue.mjs";
import { streamChat } from "../agents/stream-chat.mjs";
import { medians, quantile } from "../report/statistics.mjs";
import { fermata } from "../servers/contestants.mjs";
import { withFiles } from "../servers/files.mjs";
import { chosen } from "./chosen.mjs";

const streams = 2;
const turnTokens = 4;

const ours = ["--parallel", "4", "--ctx-size", "4096", "--store", "none"];
const none = ["--retained-slots", "0"];

/** Six conversations take turns beside two streams, in four places. Each turn computes the same in every setting. */
const settings = [
  fermata("a slot for each", [...ours, "--retained-slots", "6", "--cache-ram", "0"]),
  fermata("memory", [...ours, ...none, "--cache-ram", "2048"]),
  withFiles("files", [...ours, ...none, "--cache-ram", "0"]),
];

const fullLoad = { conversations: 6, contextWords: 900, streamTokens: 600 };
const quickLoad = { conversations: 6, contextWords: 100, streamTokens: 40 };

const opening = (number, words) => [
  { role: "system", content: `Conversation ${number}. ${wordsFrom(300 + number, words)}` },
  { role: "user", content: "Begin." },
];

async function metric(url, name) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

const restores = async (url) =>
  (await metric(url, "fermata_ram_restores_total")) +
  (await metric(url, "fermata_disk_restores_total"));

/** Turns of the conversations, one after the other, until nobody wants them any more. Returns their number. */
async function takeTurns(url, histories, isOver) {
  for (let turn = 0; ; turn++) {
    const history = histories[turn % histories.length];
    if (isOver()) return turn;
    const body = { messages: history, max_tokens: turnTokens, temperature: 0 };
    const { text } = await streamChat(url, body);
    history.push({ role: "assistant", content: text }, { role: "user", content: "Go on." });
  }
}

async function measure(url, { conversations, contextWords, streamTokens }) {
  const histories = Array.from({ length: conversations }, (_, number) =>
    opening(number, contextWords),
  );
  let isOver = false;
  // Once each: their contexts are computed before anything is measured.
  let left = conversations;
  await takeTurns(url, histories, () => left-- === 0);
  const before = await restores(url);
  const running = Array.from({ length: streams }, (_, number) =>
    streamChat(url, {
      messages: [{ role: "user", content: `Story ${number}.` }],
      max_tokens: streamTokens,
      temperature: 0,
    }),
  );
  const turns = takeTurns(url, histories, () => isOver);
  const answers = await Promise.all(running);
  isOver = true;
  const count = await turns;
  // The other stream begins beside the first tokens.
  const gaps = answers.flatMap(({ gaps: all }) => all.slice(streams));
  return {
    interTokenP50: quantile(gaps, 0.5),
    interTokenP99: quantile(gaps, 0.99),
    turns: count,
    restores: (await restores(url)) - before,
  };
}

/** What running streams feel of conversations that are moved to memory or files and back. */
export async function measureSwaps(context) {
  const load = context.quick ? quickLoad : fullLoad;
  const group = chosen(settings, context.only).map((setting) => ({ setting, results: [] }));
  for (let run = 1; run <= context.runs; run++) {
    for (const { setting, results } of group) {
      context.progress(`swaps, run ${run} of ${context.runs}: ${setting.name}`);
      const server = await setting.start(context);
      try {
        results.push(await server.during((url) => measure(url, load)));
      } finally {
        await server.stop();
      }
    }
  }
  return group.map(({ setting: { name, flags }, results }) => ({
    name,
    flags,
    median: medians(results),
    runs: results,
  }));
}
