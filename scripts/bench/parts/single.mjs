import { runEngine } from "../engine/run-engine.mjs";
import { runLlamaBench } from "../peers/llama-bench.mjs";
import { medians } from "../report/statistics.mjs";

const settings = [
  { name: "no flash-attn", flashAttention: false, cacheTypeK: "f16", cacheTypeV: "f16" },
  { name: "no flash-attn, K q8_0", flashAttention: false, cacheTypeK: "q8_0", cacheTypeV: "f16" },
  { name: "flash-attn", flashAttention: true, cacheTypeK: "f16", cacheTypeV: "f16" },
];

function forEngine({ flashAttention, cacheTypeK, cacheTypeV }) {
  return { flashAttention: flashAttention ? "on" : "off", cacheTypeK, cacheTypeV };
}

async function measure(setting, load, { runs, progress }) {
  const fermata = [];
  const peer = [];
  for (let run = 1; run <= runs; run++) {
    progress(`single stream, ${setting.name}, run ${run} of ${runs}`);
    peer.push(await runLlamaBench({ ...load, setting }));
    fermata.push(await runEngine("single", { ...load, setting: forEngine(setting) }));
  }
  return load.depths.map((depth, index) => ({
    setting: setting.name,
    depth,
    fermata: medians(fermata.map((results) => results[index])),
    peer: medians(peer.map((results) => results[index])),
    runs: { fermata: fermata.map((it) => it[index]), peer: peer.map((it) => it[index]) },
  }));
}

/** One sequence at several depths, against llama-bench at the same settings. */
export async function measureSingle(context) {
  const { model, threads, quick } = context;
  const load = {
    model,
    threads,
    depths: quick ? [0, 512] : [0, 512, 1600],
    prefillTokens: quick ? 128 : 512,
    decodeTokens: quick ? 16 : 64,
  };
  const rows = [];
  for (const setting of quick ? settings.slice(0, 1) : settings) {
    rows.push(...(await measure(setting, load, context)));
  }
  return rows;
}
