// A draft model beside a real one: the same tokens, and a clear word where it cannot draft.
import { describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import type { Sampling } from "../../src/engine/types.ts";
import { collect, holdAtEnd, loadTestEngine, modelPath, readUntil } from "../support/engine.ts";
import { writeRandomKind } from "../support/random-kinds.ts";
import { writeOtherVocabulary } from "../support/other-vocabulary.ts";
import { greedy } from "../support/sampling.ts";

const question = (name: string): string =>
  `<|im_start|>user\nWho is ${name}?<|im_end|>\n<|im_start|>assistant\n`;

/** Three at once, the last of which is held, resumed and read to its end. */
async function run(engine: Engine, sampling: Sampling): Promise<number[][]> {
  const [one, two, three] = await Promise.all(
    ["Anna", "Bert", "Carl"].map(question).map((text) => engine.tokenize(text)),
  );
  const plain = [one!, two!].map((prompt) => engine.generate({ prompt, sampling, maxTokens: 60 }));
  const held = engine.generate({ prompt: three!, sampling, maxTokens: 40, pause: holdAtEnd });
  const resumed = async (): Promise<void> => {
    await readUntil(held, "hold");
    const tokens = await engine.tokenize(question("Dora"));
    held.resume({ tokens, keepPending: true, maxTokens: 40 });
    for await (const event of held) if (event.type === "hold") held.release();
  };
  await Promise.all([...plain.map((generation) => collect(generation)), resumed()]);
  return [...plain, held].map(({ tokens }) => [...tokens]);
}

describe.each([
  ["greedy", greedy],
  ["drawn", { ...greedy, temperature: 0.8, topK: 40, seed: 5 }],
] satisfies [string, Sampling][])("%s", (_name, sampling) => {
  it.each(["streams", "unified"] as const)("says the same with it: %s", async (kvLayout) => {
    const plain = await loadTestEngine({ kvLayout });
    const drafting = await loadTestEngine({ kvLayout, draftModel: modelPath });
    expect(await run(drafting, sampling)).toEqual(await run(plain, sampling));
    expect(plain.stats()).toMatchObject({ draftedRows: 0, draftModelRows: 0 });
    // For how long it is asked depends on what its steps take: a model of this size never pays.
    expect(drafting.stats().draftModelRows).toBeGreaterThan(0);
    expect(drafting.stats().acceptedRows).toBeGreaterThan(0);
    expect(await drafting.checkIntegrity()).toBe("");
    await Promise.all([plain.close(), drafting.close()]);
  });
});

it("closes while it drafts, and loading it can be cancelled", async () => {
  const engine = await loadTestEngine({ draftModel: modelPath });
  const generation = engine.generate({
    prompt: await engine.tokenize(question("Anna")),
    sampling: { ...greedy, ignoresEnd: true },
  });
  await readUntil(generation, "text");
  await engine.close();
  const load = Engine.load({ modelPath, draftModel: modelPath }, { signal: AbortSignal.abort() });
  await expect(load).rejects.toMatchObject({ code: "cancelled" });
});

describe("is refused", () => {
  const refusal = async (options: Parameters<typeof loadTestEngine>[0]): Promise<unknown> => {
    try {
      await (await loadTestEngine(options)).close();
      return "it was loaded";
    } catch (error) {
      return error;
    }
  };

  it("for a model whose cache cannot be cut back", async () => {
    const recurrent = writeRandomKind("mamba2");
    expect(await refusal({ modelPath: recurrent, draftModel: modelPath })).toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(/^draftModel has no use here: .* cannot be cut back/u),
    });
    expect(await refusal({ draftModel: recurrent })).toMatchObject({ code: "invalid_option" });
  });

  it("with another vocabulary", async () => {
    expect(await refusal({ draftModel: writeOtherVocabulary() })).toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("has another vocabulary than the model"),
    });
  });

  it("where there is none", async () => {
    expect(await refusal({ draftModel: "none.gguf" })).toMatchObject({ code: "model_not_found" });
    expect(await refusal({ draftModel: modelPath, deterministic: true })).toMatchObject({
      code: "invalid_option",
      param: "draftModel",
    });
  });
});
