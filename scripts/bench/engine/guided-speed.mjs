import { readFileSync } from "node:fs";
import { randomTokens } from "./random-tokens.mjs";

const layout = { whitespace_flexible: false, item_separator: ", ", key_separator: ": " };

const modes = [
  { name: "no grammar" },
  { name: "grammar, nothing forced", guided: true, forcedTokens: false },
  { name: "grammar, forced tokens", guided: true, forcedTokens: true },
];

/** JSON with a blank behind commas and colons, as most templates show calls. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(([key, it]) => `${JSON.stringify(key)}: ${spaced(it)}`);
  return `{${entries.join(", ")}}`;
}

function callText({ name, arguments: values }) {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${spaced(values)}}\n</tool_call>`;
}

function grammarOf({ tools }) {
  const calls = tools.map(({ name, schema }, index) => {
    const head = `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `;
    const body = JSON.stringify({ ...schema, "x-guidance": layout });
    return `call_${index}: ${JSON.stringify(head)} %json ${body} "}\\n</tool_call>"`;
  });
  return [`start: ${tools.map((_, index) => `call_${index}`).join(" | ")}`, ...calls].join("\n");
}

function scriptedBy(script) {
  return {
    temperature: 0,
    topK: 0,
    topP: 1,
    minP: 0,
    typicalP: 1,
    repeatPenalty: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    penaltyLastN: 0,
    seed: 1,
    logitBias: [],
    script,
  };
}

/** Writes one call; from its first token to its end. */
async function run(engine, prompt, sampling, request) {
  let first;
  let tokens = 0;
  let text = "";
  for await (const event of engine.generate({ prompt, sampling, maxTokens: 600, ...request })) {
    if (event.type !== "text") continue;
    first ??= performance.now();
    tokens += event.tokens.length;
    text += event.text;
  }
  return { milliseconds: performance.now() - first, tokens: tokens - 1, text };
}

function tokensFor({ model }, count, seed) {
  return randomTokens(count, seed).map((token) => token % model.vocabularySize);
}

/** How long a step of so many rows of one sequence takes, in milliseconds. */
async function stepTimes(engine, base) {
  const times = [];
  for (const rows of [1, 2, 3, 4, 6, 8, 12, 16]) {
    const taken = [];
    for (let attempt = 0; attempt < 5; attempt++) {
      const stop = engine.onStep(({ prefillRows, milliseconds }) => {
        if (prefillRows === rows) taken.push(milliseconds);
      });
      const tail = tokensFor(engine, rows, 9000 + 100 * rows + attempt);
      const prompt = Int32Array.from([...base, ...tail]);
      for await (const _ of engine.generate({ prompt, sampling: scriptedBy(tail), maxTokens: 1 }));
      stop();
    }
    times.push({ rows, milliseconds: Math.min(...taken) });
  }
  return times;
}

/**
 * Writes the calls of the file `load.calls` in each mode, side by side, the tokens given by a script,
 * so that every mode computes the same text.
 */
export async function measureGuidedSpeed(Engine, options, { calls: file, runs }) {
  const calls = JSON.parse(readFileSync(file, "utf8"));
  const engine = await Engine.load({ ...options, contextSize: 2048, parallel: 1 });
  let steps = 0;
  engine.onStep(() => (steps += 1));
  const prompt = tokensFor(engine, 200, 1);
  const totals = modes.map(({ name }) => ({ name, tokens: 0, milliseconds: 0, steps: 0, same: 0 }));
  for (const call of calls) {
    const text = callText(call);
    const sampling = scriptedBy(await engine.tokenize(text));
    const grammar = await engine.compileGrammar({ kind: "lark", text: grammarOf(call) });
    for (let round = 0; round < runs; round++) {
      for (const [index, { guided, forcedTokens }] of modes.entries()) {
        const before = steps;
        const request = guided ? { grammar, forcedTokens } : {};
        const outcome = await run(engine, prompt, sampling, request);
        const total = totals[index];
        total.tokens += outcome.tokens;
        total.milliseconds += outcome.milliseconds;
        total.steps += steps - before - 1;
        total.same += outcome.text === text ? 1 : 0;
      }
    }
  }
  const rateOf = ({ tokens, milliseconds }) => (1000 * tokens) / milliseconds;
  const rows = totals.map(({ name, tokens, milliseconds, steps: taken, same }) => ({
    name,
    rate: rateOf({ tokens, milliseconds }),
    unguided: rateOf(totals[0]),
    stepsPerToken: taken / tokens,
    same: `${same} of ${calls.length * runs}`,
  }));
  const times = await stepTimes(engine, prompt);
  await engine.close();
  return { rows, stepTimes: times };
}
