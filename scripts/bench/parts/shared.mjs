import { runEngine } from "../engine/run-engine.mjs";
import { arrangements, runBatchedBench } from "../peers/batched-bench.mjs";
import { chosen } from "./chosen.mjs";
import { medians } from "../report/statistics.mjs";

/** Fermata as it comes, and in the arrangements that suit a shared prefix. */
const ours = [
  { name: "Fermata", setting: {} },
  { name: "Fermata, K q8_0", setting: { cacheTypeK: "q8_0" } },
  {
    name: "Fermata, unified, K q8_0",
    setting: { kvLayout: "unified", flashAttention: "off", cacheTypeK: "q8_0" },
  },
  {
    name: "Fermata, unified, flash-attn",
    setting: { kvLayout: "unified", flashAttention: "on" },
  },
];

async function measure(load, { runs, progress, quick, only }) {
  const all = [
    ...ours.map(({ name, setting }) => ({
      name,
      isFermata: true,
      run: () => runEngine("shared", { ...load, setting }),
    })),
    ...arrangements.slice(0, quick ? 1 : undefined).map((arrangement) => ({
      name: arrangement.name,
      isFermata: false,
      run: () => runBatchedBench(arrangement, load),
    })),
  ];
  const contestants = chosen(all, only);
  const results = new Map(contestants.map(({ name }) => [name, []]));
  for (let run = 1; run <= runs; run++) {
    for (const contestant of contestants) {
      progress(
        `shared prefix, ${load.generated} tokens each, run ${run} of ${runs}: ${contestant.name}`,
      );
      results.get(contestant.name).push(await contestant.run());
    }
  }
  return contestants.map(({ name, isFermata }) => ({
    name,
    isFermata,
    generated: load.generated,
    median: medians(results.get(name)),
    runs: results.get(name),
  }));
}

/** Eight sequences that share a prompt, against each way llama-batched-bench can arrange them. */
export async function measureShared(context) {
  const { model, threads, quick } = context;
  const load = { model, threads, sequences: 8, promptTokens: quick ? 300 : 1500 };
  const rows = [];
  for (const generated of quick ? [8] : [64]) {
    rows.push(...(await measure({ ...load, generated }, context)));
  }
  return rows;
}
