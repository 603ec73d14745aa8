// Measures Fermata's engine in a process of its own: worker.mjs single|shared '{"model":…}' prints
// one line of JSON.
import { loadDist } from "./dist.mjs";
import { measureEarlyWork } from "./early-work.mjs";
import { randomTokens } from "./random-tokens.mjs";
import { measureGuidedSpeed } from "./guided-speed.mjs";
import { measureMaskTimes } from "./mask-times.mjs";
import { timedGeneration } from "./timed-generation.mjs";

const [task, loadText] = process.argv.slice(2);
const load = JSON.parse(loadText);
const { Engine } = await loadDist("engine", "engine.js");

// Without drafts: what random weights say repeats itself as no text does.
const engineOptions = {
  modelPath: load.model,
  threads: load.threads,
  drafts: false,
  ...load.setting,
};
const perSecond = (count, milliseconds) => (1000 * count) / milliseconds;

async function measureDepth(engine, depth) {
  const { prefillTokens, decodeTokens } = load;
  const base = randomTokens(depth, 1000 + depth);
  // Leaves the first `depth` tokens in the cache.
  if (depth > 0) await timedGeneration(engine, base, 1);

  const prompt = Int32Array.from([...base, ...randomTokens(prefillTokens, 2000 + depth)]);
  const prefilled = await timedGeneration(engine, prompt, 1);
  const short = depth > 0 ? base : randomTokens(1, 3000);
  const { arrivals } = await timedGeneration(engine, short, decodeTokens + 1);
  return {
    depth,
    prefill: perSecond(prefilled.usage.prefilledTokens, prefilled.arrivals[0]),
    decode: perSecond(decodeTokens, arrivals.at(-1) - arrivals[0]),
    prefilledTokens: prefilled.usage.prefilledTokens,
  };
}

async function measureSingle() {
  const contextSize = Math.max(...load.depths) + load.prefillTokens + load.decodeTokens + 64;
  const engine = await Engine.load({
    ...engineOptions,
    contextSize,
    parallel: 1,
    retainedSlots: 1,
  });
  await timedGeneration(engine, randomTokens(64, 1), 8);
  const results = [];
  for (const depth of load.depths) results.push(await measureDepth(engine, depth));
  await engine.close();
  return results;
}

async function measureShared() {
  const { sequences, promptTokens, generated } = load;
  const contextSize = promptTokens + generated + 64;
  const engine = await Engine.load({
    ...engineOptions,
    contextSize,
    parallel: sequences,
    retainedSlots: 1,
    // Like the peer, which clears its cache after the first run: that run's cells would stay in view.
    retainBetweenRequests: false,
  });
  await timedGeneration(engine, randomTokens(64, 1), 8);

  const steps = [];
  engine.onStep((step) => steps.push(step));
  const prompt = randomTokens(promptTokens, 7);
  const runs = await Promise.all(
    Array.from({ length: sequences }, () => timedGeneration(engine, prompt, generated)),
  );
  const first = Math.min(...runs.map(({ arrivals }) => arrivals[0]));
  const last = Math.max(...runs.map(({ arrivals }) => arrivals.at(-1)));
  await engine.close();

  const decodeSteps = steps.filter((step) => step.decodeRows > 0);
  const microBatches = decodeSteps.reduce((total, step) => total + step.microBatches, 0);
  return {
    prefill: perSecond(promptTokens, first),
    // The first token of the first sequence came out of the prefill.
    decode: perSecond(sequences * generated - 1, last - first),
    seconds: last / 1000,
    microBatchesPerStep: microBatches / decodeSteps.length,
  };
}

const tasks = {
  single: measureSingle,
  shared: measureShared,
  masks: () => measureMaskTimes(Engine, engineOptions, load),
  guided: () => measureGuidedSpeed(Engine, engineOptions, load),
  early: () => measureEarlyWork(Engine, engineOptions, load),
};
const result = await tasks[task]();
process.stdout.write(`${JSON.stringify(result)}\n`);
