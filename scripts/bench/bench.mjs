#!/usr/bin/env node
// npm run bench -- --help
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fetchRealModel, realModels } from "../real/models.mjs";
import { setUp } from "../setup.mjs";
import { root } from "../setup/paths.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { SetupError, exitOnSetupError, say } from "../setup/report.mjs";
import { help, takeBenchOptions } from "./options.mjs";
import { measureAgents } from "./parts/agents.mjs";
import { measureBusy } from "./parts/busy.mjs";
import { measureDrafts } from "./parts/drafts.mjs";
import { measureEarly } from "./parts/early.mjs";
import { measureGuided } from "./parts/guided.mjs";
import { measureMasks } from "./parts/masks.mjs";
import { measureRetention } from "./parts/retention.mjs";
import { measureShared } from "./parts/shared.mjs";
import { measureSwaps } from "./parts/swaps.mjs";
import { measureSingle } from "./parts/single.mjs";
import { buildPeers } from "./peers/build-peers.mjs";
import { writeDocs } from "./report/docs.mjs";
import { watchingIdle } from "./report/idle.mjs";
import { describeMachine } from "./report/machine.mjs";
import { renderText, tablesOf } from "./report/tables.mjs";
import { deepModels, makeDeepModel } from "./shapes/deepen.mjs";
import { makeShape } from "./shapes/make-shape.mjs";
import { shapes } from "./shapes/shape.mjs";

const parts = {
  single: measureSingle,
  shared: measureShared,
  agents: measureAgents,
  masks: measureMasks,
  guided: measureGuided,
  early: measureEarly,
  retention: measureRetention,
  swaps: measureSwaps,
  drafts: measureDrafts,
  busy: measureBusy,
};

function readResults(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

function writeResults(file, results) {
  mkdirSync(dirname(resolve(file)), { recursive: true });
  writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
}

async function modelNamed(name) {
  if (realModels.includes(name)) return { path: await fetchRealModel(name) };
  return name in deepModels ? makeDeepModel(name) : makeShape(shapes[name]);
}

/** Results grow part by part, so that a run that is cut short leaves what it has. */
async function measure(options, onResults) {
  if (!options["no-build"]) {
    await setUp(takeSetupOptions([]).options);
    await buildPeers();
  }
  const { json } = options;
  const results = json && existsSync(json) ? readResults(json) : { shapes: {} };
  results.machine = await describeMachine(options.threads);
  for (const name of options.shape) {
    const { path, sha256, draftModel } = await modelNamed(name);
    const context = { ...options, model: path, draftModel, progress: say };
    for (const part of options.part) {
      say(`${name} shape, ${part}`);
      const { rows, busy } = await watchingIdle(() => parts[part](context));
      if (busy) say("other programs used this machine: do not quote these figures");
      const date = new Date().toISOString().slice(0, 10);
      const measured = { date, busy, quick: options.quick, runs: options.runs, rows };
      results.shapes[name] = { ...results.shapes[name], sha256, [part]: measured };
      onResults(results);
    }
  }
  return results;
}

try {
  const options = takeBenchOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
  } else {
    if (options.from && !existsSync(options.from)) {
      throw new SetupError(`There is no file ${options.from}.`);
    }
    const results = options.from
      ? readResults(options.from)
      : await measure(options, (grown) => options.json && writeResults(options.json, grown));
    process.stdout.write(renderText(results.machine, tablesOf(results)));
    if (options.docs) writeDocs(join(root, "docs/bench"), results);
  }
} catch (error) {
  exitOnSetupError(error);
}
