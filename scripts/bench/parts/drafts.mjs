import { streamChat } from "../agents/stream-chat.mjs";
import { kinds } from "../drafts/turns.mjs";
import { flagList } from "../flags.mjs";
import { medians } from "../report/statistics.mjs";
import { fermata, llamaServer } from "../servers/contestants.mjs";
import { readStepMetrics } from "../servers/step-metrics.mjs";
import { chosen } from "./chosen.mjs";

const ours = ["--parallel", "8", "--ctx-size", "4096", "--store", "none"];
const theirs = ["-np", "8", "-c", "32768", "--no-kv-unified"];
const speculating = (...flags) => [...theirs, "--spec-type", ...flags];

const shortRuns = { "--spec-ngram-simple-size-n": 4, "--spec-ngram-simple-size-m": 16 };

const contestants = [
  fermata("drafts", [...ours, "--drafts"]),
  fermata("no drafts", ours),
  llamaServer("no speculation", theirs),
  llamaServer("ngram-simple", speculating("ngram-simple")),
  llamaServer("ngram-simple, 4 find 16", speculating("ngram-simple", ...flagList(shortRuns))),
  llamaServer("ngram-map-k", speculating("ngram-map-k")),
  llamaServer("ngram-map-k4v", speculating("ngram-map-k4v")),
  llamaServer("ngram-mod", speculating("ngram-mod")),
  llamaServer("ngram-cache", speculating("ngram-cache")),
];

/** Of a model that has a smaller one beside it. */
const withDraftModel = (path) => {
  const speculates = (tokens) =>
    speculating("draft-simple", ...flagList({ "-md": path, "--spec-draft-n-max": tokens }));
  return [
    fermata("draft model", [...ours, ...flagList({ "--draft-model": path })]),
    fermata("no drafts", ours),
    llamaServer("no speculation", theirs),
    ...[3, 6, 12].map((tokens) => llamaServer(`draft model, ${tokens} tokens`, speculates(tokens))),
  ];
};

const body = (prompt, tokens) => ({
  messages: [{ role: "user", content: prompt }],
  temperature: 0,
  max_tokens: tokens,
});

/** Tokens a second of all agents together, from prompts that are in the cache. */
async function turn(url, { agents, prompt }, tokens, number) {
  const prompts = Array.from({ length: agents }, (_, agent) => prompt(number * agents + agent));
  for (const each of prompts) await streamChat(url, body(each, 1));
  const start = performance.now();
  const answers = await Promise.all(prompts.map((each) => streamChat(url, body(each, tokens))));
  const seconds = (performance.now() - start) / 1000;
  const written = answers.reduce((sum, { usage }) => sum + usage.completion_tokens, 0);
  return { rate: written / seconds, tokens: written };
}

/** One server for all kinds. What drafts cost and gain is learned from the steps, so one turn of each goes before. */
async function runOnce(contestant, context, run) {
  const tokens = context.quick ? 24 : 160;
  const server = await contestant.start(context);
  try {
    return await server.during(async (url) => {
      const rates = [];
      for (const kind of context.quick ? kinds.slice(0, 1) : kinds) {
        if (!context.quick) await turn(url, kind, tokens, 0);
        const before = contestant.isFermata && (await readStepMetrics(url));
        const measured = await turn(url, kind, tokens, run);
        if (before) {
          const after = await readStepMetrics(url);
          measured.steps = after.steps - before.steps;
          measured.drafted = after.draftedRows - before.draftedRows;
          measured.accepted = after.acceptedRows - before.acceptedRows;
        }
        context.progress(`  ${kind.kind}: ${JSON.stringify(measured)}`);
        rates.push({ kind: kind.kind, measured });
      }
      return rates;
    });
  } finally {
    await server.stop();
  }
}

/** Answers that repeat their prompt and answers that do not, on a real model, with drafts and without. */
export async function measureDrafts(context) {
  const { draftModel } = context;
  const all = draftModel === undefined ? contestants : withDraftModel(draftModel);
  const rows = new Map();
  for (let run = 1; run <= context.runs; run++) {
    for (const contestant of chosen(all, context.only)) {
      const { name, isFermata, flags } = contestant;
      context.progress(`drafts, run ${run} of ${context.runs}: ${name}`);
      for (const { kind, measured } of await runOnce(contestant, context, run)) {
        const key = `${kind} ${name}`;
        const row = rows.get(key) ?? { name, isFermata, flags, kind, runs: [] };
        row.runs.push(measured);
        rows.set(key, row);
      }
    }
  }
  const order = kinds.map(({ kind }) => kind);
  return [...rows.values()]
    .map((row) => ({ ...row, median: medians(row.runs) }))
    .toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}
