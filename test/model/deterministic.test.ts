// What a deterministic engine promises: the tokens of a request and their log-probabilities, to the bit,
// whatever else runs, whatever is cached, and after a hold.
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type {
  GenerateRequest,
  Generation,
  Sampling,
  TokenLogprobs,
} from "../../src/engine/types.ts";
import { holdAtEnd, loadTestEngine, readUntil } from "../support/engine.ts";
import { greedy } from "../support/sampling.ts";

const topic = (words: string) =>
  `<|im_start|>system\nYou answer in one short sentence, and you say so when you do not know.<|im_end|>\n` +
  `<|im_start|>user\n${words}<|im_end|>\n<|im_start|>assistant\n`;
const question = topic(
  "What is the weather in Paris today, will it rain tomorrow, and what should I pack for three days?",
);
const others = ["Name a river.", "List the files in this folder. ".repeat(9), "Why?", "Tell me. "];
const drawn: Sampling = { ...greedy, temperature: 1.3, topP: 0.95, minP: 0.05, seed: 11 };

let engine: Engine;
let prompt: Int32Array;

beforeAll(async () => {
  engine = await loadTestEngine({ deterministic: true, parallel: 5 });
  prompt = await engine.tokenize(question);
});
afterAll(async () => {
  expect(await engine.checkIntegrity()).toBe("");
  await engine.close();
});

interface Said {
  tokens: number[];
  logprobs: TokenLogprobs[];
}

async function read(generation: Generation): Promise<Said> {
  const said: Said = { tokens: [], logprobs: [] };
  for await (const event of generation) {
    if (event.type !== "text") continue;
    said.tokens.push(...event.tokens);
    said.logprobs.push(...(event.logprobs ?? []));
  }
  return said;
}

function run(request: Partial<GenerateRequest>, on: Engine = engine): Promise<Said> {
  return read(on.generate({ prompt, sampling: greedy, maxTokens: 40, topLogprobs: 3, ...request }));
}

/** Beside four others, which have begun before it and outlive most of it. */
async function amongOthers<T>(work: () => Promise<T>): Promise<T> {
  const generations = await Promise.all(
    others.map(async (words, i) =>
      engine.generate({
        prompt: await engine.tokenize(topic(words)),
        sampling: { ...greedy, temperature: 1, seed: i },
        maxTokens: 60,
      }),
    ),
  );
  const ends = generations.map((generation) => read(generation));
  const [result] = await Promise.all([work(), ...ends]);
  return result;
}

/** In an engine that has computed nothing before. */
async function cold(request: Partial<GenerateRequest>): Promise<Said> {
  const fresh = await loadTestEngine({ deterministic: true, parallel: 1 });
  const said = await run(request, fresh);
  await fresh.close();
  return said;
}

it.each([
  ["greedy", greedy],
  ["drawn", drawn],
])("%s: cold, from the cache and among others", async (_name, sampling) => {
  const expected = await cold({ sampling });
  expect(expected.tokens.length).toBeGreaterThan(4);
  expect(expected.logprobs.length).toBe(expected.tokens.length);
  expect(await amongOthers(() => run({ sampling }))).toEqual(expected);
  expect(await run({ sampling })).toEqual(expected);
  expect(await amongOthers(() => run({ sampling }))).toEqual(expected);
});

it("what was generated serves as a later prompt's beginning", async () => {
  const script = await engine.tokenize(
    "One two three four five six seven eight nine ten. ".repeat(5),
  );
  const long = { ...greedy, script };
  await run({ sampling: long, maxTokens: script.length });
  const after = { prompt: Int32Array.from([...prompt, ...script, ...prompt]), sampling: drawn };
  const cached = engine.stats().cachedTokens;
  const warm = await run(after);
  expect(engine.stats().cachedTokens - cached).toBeGreaterThan(prompt.length + 32);
  expect(warm).toEqual(await cold(after));
});

it.each([
  ["greedy", greedy],
  ["drawn", drawn],
])("%s: after a hold whose results were guessed wrongly", async (_name, sampling) => {
  const [end] = await engine.tokenize("<|im_end|>");
  const said = Int32Array.from([...(await engine.tokenize("Let me look.")), end!]);
  const result = await engine.tokenize(topic("18 degrees, and it rains. ".repeat(6)));
  const wrong = await engine.tokenize(topic("It snows. ".repeat(20)));
  const held = async () => {
    const generation = engine.generate({
      prompt,
      sampling: { ...sampling, script: said, samplesAfterScript: true },
      topLogprobs: 3,
      pause: holdAtEnd,
    });
    await readUntil(generation, "hold");
    generation.extend({ tokens: wrong, keepPending: true });
    await run({ prompt: wrong, maxTokens: 2 });
    generation.resume({ tokens: result, keepPending: true, maxTokens: 24 });
    const tokens: number[] = [];
    const logprobs: TokenLogprobs[] = [];
    for await (const event of generation) {
      if (event.type === "hold") generation.release();
      if (event.type !== "text") continue;
      tokens.push(...event.tokens);
      logprobs.push(...(event.logprobs ?? []));
    }
    return { tokens, logprobs };
  };
  const expected = await cold({
    prompt: Int32Array.from([...prompt, ...said, ...result]),
    sampling: { ...sampling, goesOn: true },
    maxTokens: 24,
  });
  expect(await held()).toEqual(expected);
  expect(await amongOthers(held)).toEqual(expected);
});

it("a guided text that is closed at its limit", async () => {
  const source = {
    kind: "lark" as const,
    text: `start: %json {"type": "object", "properties": {"name": {"type": "string"}, "notes": {"type": "array",
"items": {"type": "string"}}}, "required": ["name", "notes"], "additionalProperties": false}`,
  };
  const request = { sampling: drawn, maxTokens: 24, closeAtLimit: true, topLogprobs: undefined };
  const fresh = await loadTestEngine({ deterministic: true, parallel: 1 });
  const expected = await run({ ...request, grammar: await fresh.compileGrammar(source) }, fresh);
  await fresh.close();
  const text = engine.detokenize(Int32Array.from(expected.tokens)).replace("<|im_end|>", "");
  expect(() => JSON.parse(text)).not.toThrow();
  const grammar = await engine.compileGrammar(source);
  expect(await run({ ...request, grammar })).toEqual(expected);
  expect(await amongOthers(() => run({ ...request, grammar }))).toEqual(expected);
});
