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
  fermata("drafts", ours, ["--drafts"]),
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
    fermata("draft model", ours, flagList({ "--draft-model": path })),
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

async function measureTurn(contestant, url, kind, context, run) {
  const tokens = context.quick ? 24 : 160;
  // What drafts cost and gain is learned from the steps, so one turn of each kind goes before.
  if (!context.quick) await turn(url, kind, tokens, 0);
  const before = contestant.isFermata && (await readStepMetrics(url));
  const measured = await turn(url, kind, tokens, run);
  if (before) {
    const after = await readStepMetrics(url);
    measured.steps = after.steps - before.steps;
    measured.drafted = after.draftedRows - before.draftedRows;
    measured.accepted = after.acceptedRows - before.acceptedRows;
  }
  context.progress(`  ${kind.kind}, ${contestant.name}: ${JSON.stringify(measured)}`);
  return { contestant, kind: kind.kind, measured };
}

/**
 * The servers of a group stand beside each other and take turns, so that a processor that is slower for some minutes is
 * slower for all of them.
 */
async function runOnce(group, context, run) {
  const started = [];
  try {
    for (const contestant of group)
      started.push({ contestant, server: await contestant.start(context) });
    const measured = [];
    for (const kind of context.quick ? kinds.slice(0, 1) : kinds) {
      for (const { contestant, server } of run % 2 === 0 ? started.toReversed() : started) {
        measured.push(
          await server.during((url) => measureTurn(contestant, url, kind, context, run)),
        );
      }
    }
    return measured;
  } finally {
    for (const { server } of started) await server.stop();
  }
}

/** Fermata with drafts beside Fermata without; the others one by one, for their memory. */
function groupsOf(contestants) {
  const ours = contestants.filter(({ isFermata }) => isFermata);
  const others = contestants.filter(({ isFermata }) => !isFermata).map((each) => [each]);
  return ours.length > 0 ? [ours, ...others] : others;
}

/** Answers that repeat their prompt and answers that do not, on a real model, with drafts and without. */
export async function measureDrafts(context) {
  const { draftModel } = context;
  const all = draftModel === undefined ? contestants : withDraftModel(draftModel);
  const rows = new Map();
  for (let run = 1; run <= context.runs; run++) {
    for (const group of groupsOf(chosen(all, context.only))) {
      const names = group.map(({ name }) => name).join("; ");
      context.progress(`drafts, run ${run} of ${context.runs}: ${names}`);
      for (const { contestant, kind, measured } of await runOnce(group, context, run)) {
        const { name, isFermata, flags } = contestant;
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
