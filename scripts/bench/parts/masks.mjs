import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { schemaCorpus } from "../corpora.mjs";
import { runEngine } from "../engine/run-engine.mjs";
import { peers } from "../peers/build-peers.mjs";
import { runProcess } from "../processes.mjs";
import { quantile } from "../report/statistics.mjs";

/** Schemas in GBNF by llama.cpp's own converter; "" where it has none. */
async function toGbnf(schemas, directory) {
  const file = join(directory, "schemas");
  writeFileSync(file, schemas.map((schema) => `${JSON.stringify(schema)}\n`).join(""));
  const output = await runProcess(peers.schemaToGbnf, [file]);
  return output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function summary(engine, { tried, compiled, masks, firstMasks }) {
  return {
    engine,
    tried,
    compiled,
    masks: masks.length,
    p50: quantile(masks, 0.5),
    p99: quantile(masks, 0.99),
    max: quantile(masks, 1),
    firstP50: quantile(firstMasks, 0.5),
    firstP99: quantile(firstMasks, 0.99),
  };
}

/** The time of one mask over the schemas of the corpora, along texts that satisfy them. */
export async function measureMasks({ model, data, quick, progress }) {
  const corpus = schemaCorpus(data).slice(0, quick ? 20 : undefined);
  progress(`masks, ${corpus.length} schemas`);
  const directory = mkdtempSync(join(tmpdir(), "fermata-masks-"));
  try {
    const gbnf = await toGbnf(
      corpus.map(({ schema }) => schema),
      directory,
    );
    const file = join(directory, "corpus.json");
    writeFileSync(file, JSON.stringify(corpus.map((it, index) => ({ ...it, gbnf: gbnf[index] }))));
    const load = { model, threads: 1, corpus: file, gbnfStride: quick ? 1 : 10 };
    const { lark, gbnf: peer } = await runEngine("masks", load);
    return [summary("llguidance", lark), summary("llama.cpp GBNF", peer)];
  } finally {
    rmSync(directory, { recursive: true });
  }
}
