// Measures Fermata's engine in a process of its own: engine-worker.mjs steps|together '{"model":…}' prints one line of
// JSON. Times are the engine's own, of whole steps.
import { loadDist } from "../../bench/engine/dist.mjs";
import { randomTokens } from "../../bench/engine/random-tokens.mjs";
import { timedGeneration } from "../../bench/engine/timed-generation.mjs";

const [task, loadText] = process.argv.slice(2);
const { model, engine: options, startAt, phaseMs, phases } = JSON.parse(loadText);
const { Engine } = await loadDist("engine", "engine.js");

const engine = await Engine.load({ modelPath: model, drafts: false, ...options });
const steps = [];
engine.onStep((step) => steps.push(step));
let seed = 1;
const fresh = (count) => randomTokens(count, seed++);

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** The steps of `action`. */
async function stepsOf(action) {
  steps.length = 0;
  await action();
  return steps.splice(0);
}

/** A pass of so many rows, at the beginning of a sequence. */
async function chunkMs(rows, times) {
  const measured = [];
  for (let time = 0; time < times; time++) {
    const [first] = await stepsOf(() => timedGeneration(engine, fresh(rows), 1));
    measured.push(first.milliseconds);
  }
  return median(measured);
}

/** A step of `sequences` that decode behind `depth` tokens each, in one pass; of three times. */
async function decodeMs(sequences, depth, tokens) {
  const decoding = [];
  for (let time = 0; time < 3; time++) {
    const taken = await stepsOf(() =>
      Promise.all(
        Array.from({ length: sequences }, () => timedGeneration(engine, fresh(depth), tokens)),
      ),
    );
    const isPure = (step) =>
      step.prefillRows === 0 && step.decodeRows === sequences && step.microBatches === 1;
    decoding.push(...taken.filter(isPure));
  }
  return median(decoding.map(({ milliseconds }) => milliseconds));
}

/** Chunks of 512 rows: the last one of a long prompt against the first. */
async function chunkAttentionMs(depth) {
  const taken = await stepsOf(() => timedGeneration(engine, fresh(depth + 512), 1));
  const chunks = taken.filter(({ prefillRows }) => prefillRows === 512);
  const beyond = chunks.at(-1).milliseconds - chunks[0].milliseconds;
  return beyond / (512 * (chunks.length - 1) * 512);
}

/** Sequences of `depth` tokens that were pushed out of their slots come back, one row of each is computed. */
async function measureMoves(depth, slots, rowMs) {
  const prompts = Array.from({ length: slots + 3 }, () => fresh(depth));
  for (const prompt of prompts) await timedGeneration(engine, prompt, 1);
  const rates = [];
  for (const prompt of prompts) {
    const before = engine.stats().ramMovedBytes;
    const taken = await stepsOf(() => timedGeneration(engine, Int32Array.from([...prompt, 9]), 1));
    const ms = taken.reduce((sum, { milliseconds }) => sum + milliseconds, 0) - rowMs;
    rates.push((engine.stats().ramMovedBytes - before) / Math.max(ms, 0.1));
  }
  return median(rates);
}

/** What is left of a step without what its rows attend to, which is counted by itself. */
const weightsMs = (ms, attended, attentionMs) => Math.max(ms - attended * attentionMs, 0.01);

async function measureSteps() {
  await timedGeneration(engine, fresh(8), 8);
  // Shortest first, and before anything long: what is pushed out of a slot is moved within a step.
  const chunks = [];
  for (const rows of [8, 16, 32, 64, 128, 256, 512])
    chunks.push({ rows, ms: await chunkMs(rows, 7) });
  const [depth, short, tokens] = [4096, 32, 32];
  const alone = await decodeMs(1, short, tokens);
  const attention = {
    decodeMs: Math.max(((await decodeMs(1, depth, tokens)) - alone) / (depth - short), 0),
    chunkMs: Math.max(await chunkAttentionMs(depth), 0),
  };
  const passes = [];
  for (const rows of [1, 2, 3, 4]) {
    const ms = await decodeMs(rows, short, tokens);
    passes.push({ rows, ms: weightsMs(ms, rows * (short + tokens / 2), attention.decodeMs) });
  }
  for (const { rows, ms } of chunks)
    passes.push({ rows, ms: weightsMs(ms, (rows * (rows + 1)) / 2, attention.chunkMs) });
  const moved = 2048;
  const rowMs = passes[0].ms + moved * attention.decodeMs;
  const slots = options.parallel + options.retainedSlots;
  return { passes, attention, movedBytesPerMs: await measureMoves(moved, slots, rowMs) };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Steps of 512 rows; or steps of two sequences that decode. */
const work = {
  chunk: () => timedGeneration(engine, fresh(512), 1),
  decode: () => Promise.all([1, 2].map(() => timedGeneration(engine, fresh(32), 64))),
};

/** Steps that ended within a second after a phase began are left out: engines settle on their threads. */
const settleMs = 1000;

/**
 * The mean step of `kind` until `end`, on the clock of `Date.now()`. What is under way then ends beside the next phase, and
 * is left out.
 */
async function phaseStepMs(kind, end) {
  const rows = kind === "chunk" ? { prefillRows: 512 } : { prefillRows: 0, decodeRows: 2 };
  const from = end - phaseMs + settleMs;
  const taken = [];
  while (Date.now() < end) {
    const all = await stepsOf(work[kind]);
    if (Date.now() > from && Date.now() < end) taken.push(...all);
  }
  const isOwn = (step) => Object.entries(rows).every(([name, count]) => step[name] === count);
  const own = taken.filter(isOwn);
  if (own.length === 0) throw new Error(`No ${kind} step was measured within ${phaseMs} ms.`);
  return mean(own.map(({ milliseconds }) => milliseconds));
}

/** Chunks, or decode steps, or nothing, in phases that all processes begin at the same time; null where it was idle. */
async function measureTogether() {
  await timedGeneration(engine, fresh(600), 8);
  await new Promise((resolve) => setTimeout(resolve, startAt - Date.now()));
  const measured = [];
  for (const [index, kind] of phases.entries()) {
    const end = startAt + (index + 1) * phaseMs;
    if (kind === "idle") {
      await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
      measured.push(null);
    } else measured.push(await phaseStepMs(kind, end));
  }
  return measured;
}

const result = await { steps: measureSteps, together: measureTogether }[task]();
await engine.close();
process.stdout.write(`${JSON.stringify(result)}\n`);
