// Drafts where they are for: a file that was read is written again with one change. The answer is the one without
// drafts, whatever else has a say in its tokens.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerateRequest, TokenLogprobs } from "../../src/engine/types.ts";
import { loadTestEngine } from "../support/engine.ts";
import { realModelPath } from "../support/real-models.ts";
import { greedy } from "../support/sampling.ts";

const file = `import { readFile } from "node:fs/promises";

/** The settings of a program, from a file of lines like "name = value". */
export async function loadSettings(path) {
  const text = await readFile(path, "utf8");
  const settings = new Map();
  for (const line of text.split("\\n")) {
    const [name, value] = line.split("=");
    if (value !== undefined) settings.set(name.trim(), value.trim());
  }
  return settings;
}
`;
const question = `<|im_start|>user\nRename loadSettings to readSettings. Answer with the whole file and nothing else.

${file}<|im_end|>\n<|im_start|>assistant\n`;

const drawn = { ...greedy, temperature: 0.7, topK: 40, topP: 0.95, seed: 7 };
const json = {
  kind: "lark" as const,
  text: `start: %json {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
"required": ["path", "content"], "additionalProperties": false}`,
};

interface Said {
  tokens: number[];
  text: string;
  logprobs: TokenLogprobs[];
  reason: string;
}

async function run(engine: Engine, request: Partial<GenerateRequest>): Promise<Said> {
  const said: Said = { tokens: [], text: "", logprobs: [], reason: "" };
  const prompt = await engine.tokenize(question);
  for await (const event of engine.generate({ prompt, maxTokens: 64, ...request })) {
    if (event.type === "finish") said.reason = event.reason;
    if (event.type !== "text") continue;
    said.tokens.push(...event.tokens);
    said.text += event.text;
    said.logprobs.push(...(event.logprobs ?? []));
  }
  return said;
}

const modelPath = realModelPath("qwen2.5-coder");

describe.skipIf(modelPath === undefined)("an edit of a file that was read", () => {
  let drafting: Engine;
  let plain: Engine;

  const options = { modelPath: modelPath!, threads: 2, parallel: 1 };
  const close = async (engine: Engine): Promise<void> => {
    expect(await engine.checkIntegrity()).toBe("");
    await engine.close();
  };

  // Both are new: the last row of a prompt that is in the cache is computed alone, and has other bits than beside many.
  // The first draft of an engine is decoded on every machine, and others where they pay.
  beforeEach(async () => {
    plain = await loadTestEngine({ ...options, drafts: false });
    drafting = await loadTestEngine({ ...options, drafts: true });
  });
  afterEach(async () => {
    await close(plain);
    await close(drafting);
  });

  it.each<[string, Partial<GenerateRequest>, boolean?]>([
    ["greedy", { sampling: greedy }],
    ["drawn", { sampling: drawn }],
    ["penalized", { sampling: { ...drawn, repeatPenalty: 1.05, frequencyPenalty: 0.1 } }],
    ["with a stop string", { sampling: greedy, stop: ["new Map("] }],
    ["with logprobs", { sampling: drawn, topLogprobs: 3 }],
    ["with a grammar", { sampling: greedy }, true],
    ["drawn with a grammar", { sampling: drawn }, true],
  ])("%s", async (_name, request, isGuided = false) => {
    const answer = async (engine: Engine) =>
      run(engine, isGuided ? { ...request, grammar: await engine.compileGrammar(json) } : request);
    const said = await answer(drafting);
    const accepted = drafting.stats().acceptedRows;
    const expected = await answer(plain);
    expect(said.text).toBe(expected.text);
    expect(said.tokens).toEqual(expected.tokens);
    expect(said.reason).toBe(expected.reason);
    expect(said.logprobs.map(({ token }) => token)).toEqual(
      expected.logprobs.map(({ token }) => token),
    );
    for (const [index, { logprob }] of said.logprobs.entries())
      expect(logprob).toBeCloseTo(expected.logprobs[index]!.logprob, 1);
    expect(accepted).toBeGreaterThan(0);
  });
});
