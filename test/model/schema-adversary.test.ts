// Random weights under the masks of many schemas: whatever ends fits its schema, ended by itself, near a limit, a byte at a time or in blanks.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { Grammar, Sampling } from "../../src/engine/types.ts";
import { compileValidator } from "../../src/guidance/validator.ts";
import { bfclTools } from "../support/bfcl.ts";
import { collect, loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { writeRandomModel } from "../support/random-model.ts";
import { greedy } from "../support/sampling.ts";
import { exactGrammar, suiteCases } from "../support/schema-suite.ts";

// Each schema with FERMATA_ADVERSARY=all; else a sample that touches nearly every keyword.
const stride = process.env["FERMATA_ADVERSARY"] === "all" ? 1 : 12;
const schemas = [
  ...(["draft2020-12", "draft7"] as const).flatMap(suiteCases).map(({ schema }) => schema),
  ...bfclTools().map(({ parameters }) => parameters),
].filter((_, index) => index % stride === 0);

let engine: Engine;
let path: string;
let prompt: Int32Array;
const grammars: { schema: unknown; grammar: Grammar }[] = [];

beforeAll(async () => {
  path = writeRandomModel(11);
  engine = await loadTestEngine({ modelPath: path, contextSize: 512, parallel: 4 });
  prompt = await engine.tokenize("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  for (const schema of hasMasks ? schemas : []) {
    const grammar = await exactGrammar(engine, schema);
    if (typeof grammar !== "string" && grammar !== null) grammars.push({ schema, grammar });
  }
});

afterAll(async () => {
  await engine.close();
  rmSync(dirname(path), { recursive: true });
});

interface Draw {
  sampling?: Partial<Sampling>;
  maxTokens: number;
  closeAtLimit: boolean;
}

/** A text of each schema, four side by side: each that ends fits. @returns those that the limit cut */
async function drawAll(draw: (seed: number) => Draw): Promise<string[]> {
  const cut: string[] = [];
  const left = grammars.entries();
  const work = async (): Promise<void> => {
    for (const [seed, { schema, grammar }] of left) {
      const { sampling, ...limits } = draw(seed);
      const generation = engine.generate({
        prompt,
        sampling: { ...greedy, temperature: 1.5, seed, ...sampling },
        grammar,
        ...limits,
      });
      const { text, finish } = await collect(generation);
      const told = `${JSON.stringify(schema)}\n${text}`;
      const fault = finish.reason === "end" ? compileValidator(schema)(JSON.parse(text)) : null;
      // What cannot be validated is no fault of the masks.
      expect(fault?.isCertain ?? false, told).toBe(false);
      if (finish.reason !== "end") cut.push(told);
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  if (stride === 1) console.log(expect.getState().currentTestName, grammars.length, cut);
  return cut;
}

/** @returns what makes these texts likely, as far as each is a token */
async function favoring(texts: readonly string[]): Promise<Sampling["logitBias"]> {
  const tokens = await Promise.all(texts.map((text) => engine.tokenize(text)));
  const single = tokens.filter(({ length }) => length === 1).map(([token]) => token!);
  expect(single.length).toBeGreaterThan(1);
  return single.map((token) => [token, 12]);
}

const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));

test.skipIf(!hasMasks)(
  "what ends by itself fits",
  async () => {
    const cut = await drawAll(() => ({ maxTokens: 160, closeAtLimit: false }));
    expect(cut.length).toBeLessThan(0.7 * grammars.length);
  },
  3_600_000,
);

test.skipIf(!hasMasks)(
  "what is closed near a limit fits, and nearly all is",
  async () => {
    const cut = await drawAll((seed) => ({ maxTokens: 30 + (seed % 30), closeAtLimit: true }));
    expect(cut.length).toBeLessThan(grammars.length / 20);
  },
  3_600_000,
);

test.skipIf(!hasMasks)(
  "a byte at a time: the same",
  async () => {
    const logitBias = await favoring(printable);
    const cut = await drawAll(() => ({
      sampling: { logitBias },
      maxTokens: 90,
      closeAtLimit: true,
    }));
    expect(cut.length).toBeLessThan(grammars.length / 20);
  },
  3_600_000,
);

test.skipIf(!hasMasks)(
  "blanks do not go on to the limit",
  async () => {
    const logitBias = await favoring([" ", "  ", "    ", "\n", "\t"]);
    const cut = await drawAll(() => ({
      sampling: { logitBias, temperature: 0 },
      maxTokens: 127,
      closeAtLimit: false,
    }));
    // A number goes on where blanks have no place.
    expect(cut.filter((told) => /(?:\s|\\[nrt]){49}$/u.test(told))).toEqual([]);
  },
  3_600_000,
);
