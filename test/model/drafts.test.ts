// Drafts on a real model: fewer steps, the same tokens, and a cache that stays sound.
import { expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type {
  EngineOptions,
  EngineStats,
  GenerateRequest,
  TokenLogprobs,
} from "../../src/engine/types.ts";
import { loadTestEngine, scripted } from "../support/engine.ts";
import { writeQuantizedModel } from "../support/random-model.ts";
import { greedy } from "../support/sampling.ts";

const listing = Array.from({ length: 12 }, (_, i) => `const value${i} = read("file-${i}.txt");`);
/** The first draft, which is decoded on every machine, begins right and ends wrong. Others are decoded where they pay. */
const edited = ['const value11 = read("file-11.md");', ...listing.slice(0, 11)];
const question = `<|im_start|>user\nRepeat:\n${listing.join("\n")}<|im_end|>\n<|im_start|>assistant\n`;

interface Said {
  tokens: number[];
  logprobs: TokenLogprobs[];
  stats: EngineStats;
}

async function run(engine: Engine, request: Partial<GenerateRequest>): Promise<Said> {
  const prompt = await engine.tokenize(question);
  const tokens: number[] = [];
  const logprobs: TokenLogprobs[] = [];
  for await (const event of engine.generate({ prompt, maxTokens: 120, ...request })) {
    if (event.type !== "text") continue;
    tokens.push(...event.tokens);
    logprobs.push(...(event.logprobs ?? []));
  }
  return { tokens, logprobs, stats: engine.stats() };
}

/** With drafts and without, on engines of their own. */
async function both(request: (engine: Engine) => Promise<Partial<GenerateRequest>>) {
  const said: Said[] = [];
  for (const drafts of [true, false]) {
    const engine = await loadTestEngine({ drafts });
    said.push(await run(engine, await request(engine)));
    expect(await engine.checkIntegrity()).toBe("");
    await engine.close();
  }
  return { with: said[0]!, without: said[1]! };
}

it("takes fewer steps for an answer that copies its prompt, and rejected rows leave the cache", async () => {
  const said = await both(async (engine) => ({
    sampling: scripted(await engine.tokenize(edited.join("\n"))),
  }));
  expect(said.with.tokens).toEqual(said.without.tokens);
  expect(said.without.stats.draftedRows).toBe(0);
  const { stats, tokens } = said.with;
  expect(stats.acceptedRows).toBeGreaterThan(0);
  expect(stats.steps).toBeLessThan(said.without.stats.steps);
  // Without the rejected rows; the last token enters no batch.
  expect(stats.draftedRows).toBeGreaterThan(stats.acceptedRows);
  expect(stats.auditedRows).toBe(stats.prefilledTokens + tokens.length - 1);
});

it("drafts by itself where that changes no bit: with quantized weights, flash-attention and streams on x86", async () => {
  const quantized = writeQuantizedModel();
  const runWith = async (options: Partial<EngineOptions>): Promise<Said> => {
    const engine = await loadTestEngine(options);
    const sampling = scripted(await engine.tokenize(edited.join("\n")));
    const said = await run(engine, { sampling, topLogprobs: 3 });
    await engine.close();
    return said;
  };
  const byItself = await runWith({ modelPath: quantized });
  const without = await runWith({ modelPath: quantized, drafts: false });
  expect(byItself.logprobs).toEqual(without.logprobs);
  expect(byItself.stats.draftedRows > 0).toBe(process.arch === "x64");
  const inOnePool = await runWith({ modelPath: quantized, kvLayout: "unified" });
  const plainAttention = await runWith({ modelPath: quantized, flashAttention: "off" });
  const halfFloats = await runWith({});
  for (const said of [without, inOnePool, plainAttention, halfFloats])
    expect(said.stats.draftedRows).toBe(0);
});

it.each([
  ["greedy", greedy],
  ["drawn", { ...greedy, temperature: 0.8, topK: 40, topP: 0.9, seed: 5 }],
  ["penalized", { ...greedy, repeatPenalty: 1.1, seed: 5 }],
])("samples the same tokens: %s", async (_name, sampling) => {
  const said = await both(() => Promise.resolve({ sampling }));
  expect(said.with.tokens).toEqual(said.without.tokens);
});

it("samples the same tokens with a grammar and logprobs, in fewer steps: what is forced is drafted", async () => {
  const text = `start: %json {"type": "object", "properties": {"path": {"type": "string"}, "lines":
{"type": "array", "items": {"type": "integer"}, "maxItems": 3}}, "required": ["path", "lines"], "additionalProperties": false}`;
  const said = await both(async (engine) => ({
    sampling: { ...greedy, temperature: 0.8, seed: 3 },
    topLogprobs: 2,
    grammar: await engine.compileGrammar({ kind: "lark", text }),
  }));
  expect(said.with.tokens).toEqual(said.without.tokens);
  expect(said.with.stats.acceptedRows).toBeGreaterThan(0);
  expect(said.with.stats.steps).toBeLessThan(said.without.stats.steps);
});
