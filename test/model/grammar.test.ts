// Grammars on the real vocabulary: what is generated satisfies them, whatever the model would say.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerateRequest } from "../../src/engine/types.ts";
import { collect, loadTestEngine, readUntil, holdAtEnd, scripted } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { greedy } from "../support/sampling.ts";

const person = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 0, maximum: 99 },
  },
  required: ["name", "age"],
  additionalProperties: false,
  "x-guidance": { whitespace_flexible: false },
};
const lark = `start: %json ${JSON.stringify(person)}`;

let engine: Engine;
let prompt: Int32Array;

beforeAll(async () => {
  engine = await loadTestEngine();
  prompt = await engine.tokenize("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
});
afterAll(async () => {
  expect(await engine.checkIntegrity()).toBe("");
  await engine.close();
});

async function generate(text: string, request: Partial<GenerateRequest> = {}) {
  const grammar = await engine.compileGrammar({ kind: "lark", text });
  return collect(
    engine.generate({ prompt, sampling: greedy, maxTokens: 100, grammar, ...request }),
  );
}

describe.skipIf(!hasMasks)("a generation with a grammar", () => {
  it.each([0, 1, 2, 3])("satisfies the schema at temperature 1.5 (seed %i)", async (seed) => {
    const sampling = { ...greedy, temperature: 1.5, seed };
    const { text, finish } = await generate(lark, { sampling });
    expect(finish.reason).toBe("end");
    const value = JSON.parse(text) as { name: string; age: number };
    expect(Object.keys(value)).toEqual(["name", "age"]);
    expect(Array.from(value.name).length).toBeLessThanOrEqual(12);
    expect(Number.isInteger(value.age) && value.age <= 99).toBe(true);
  });

  it("gives the same text with and without forced tokens", async () => {
    const forced = await generate(lark);
    const sampled = await generate(lark, { forcedTokens: false });
    expect(forced.tokens).toEqual(sampled.tokens);
    expect(forced.finish.usage).toEqual(sampled.finish.usage);
  });

  it("overrules a script where it must", async () => {
    const script = await engine.tokenize('{"name":"Ada","years":5}');
    const { text } = await generate(lark, { sampling: scripted(script) });
    expect(text).toMatch(/^\{"name":"Ada","age":-?\d+\}$/);
  });

  it("ends without a decode for it when nothing can follow", async () => {
    const { text, tokens, finish } = await generate('start: "yes"');
    expect(text).toBe("yes");
    expect(finish.reason).toBe("end");
    expect(tokens.length).toBe(finish.usage.generatedTokens);
  });

  it("is a part of a hold", async () => {
    const grammar = await engine.compileGrammar({ kind: "lark", text: 'start: "yes"' });
    const other = await engine.compileGrammar({ kind: "lark", text: 'start: "no"' });
    const generation = engine.generate({ prompt, sampling: greedy, grammar, pause: holdAtEnd });
    await readUntil(generation, "hold");
    generation.resume({ tokens: prompt, keepPending: true, grammar: other });
    const texts: string[] = [];
    for await (const event of generation) {
      if (event.type === "text") texts.push(event.text);
      if (event.type === "hold") generation.release();
    }
    expect(texts.join("")).toBe("no");
  });
});

describe.skipIf(!hasMasks)("compiling a grammar", () => {
  it("refuses what is no grammar, with the engine's reason", async () => {
    await expect(
      engine.compileGrammar({ kind: "lark", text: "start: missing" }),
    ).rejects.toMatchObject({
      code: "invalid_grammar",
      message: expect.stringContaining("missing") as string,
    });
  });

  it("refuses what nests too deep or is too large", async () => {
    const deep = `start: ${"(".repeat(5000)}"a"${")".repeat(5000)}`;
    await expect(engine.compileGrammar({ kind: "lark", text: deep })).rejects.toMatchObject({
      code: "invalid_grammar",
    });
    const large = `start: "${"a".repeat(3 << 20)}"`;
    await expect(engine.compileGrammar({ kind: "lark", text: large })).rejects.toMatchObject({
      code: "invalid_grammar",
    });
  });

  it("judges texts", async () => {
    const grammar = await engine.compileGrammar({ kind: "lark", text: lark });
    const judge = async (text: string) => {
      const tokens = await engine.tokenize(text);
      const { accepted, complete } = grammar.check(tokens);
      return { all: accepted === tokens.length, complete };
    };
    expect(await judge('{"name":"Ada","age":36}')).toEqual({ all: true, complete: true });
    expect(await judge('{"name":"Ada"')).toEqual({ all: true, complete: false });
    expect((await judge('{"age":36}')).all).toBe(false);
  });
});

describe.skipIf(!hasMasks)("near its limit", () => {
  const list = {
    type: "array",
    items: { type: "string" },
    "x-guidance": { whitespace_flexible: false },
  };

  it.each([4, 9, 30])("a text is closed within %i tokens", async (maxTokens) => {
    const sampling = { ...greedy, temperature: 1.5, seed: 3 };
    const request = { sampling, maxTokens, closeAtLimit: true };
    const { text, finish } = await generate(`start: %json ${JSON.stringify(list)}`, request);
    expect(finish.reason).toBe("end");
    expect(finish.usage.generatedTokens).toBeLessThanOrEqual(maxTokens);
    expect(Array.isArray(JSON.parse(text))).toBe(true);
  });

  it.each([
    [{ exclusiveMinimum: 0 }, "0.000000"],
    [{ exclusiveMinimum: 0 }, "99999999"],
    [{ minimum: -180, maximum: 180 }, "1.444444"],
  ])("a number of %j that goes on as %s is closed", async (limits, begun) => {
    const properties = { a: { type: "number", ...limits } };
    const schema = { ...list, type: "object", properties, required: ["a"] };
    const written = `{"a": ${begun.padEnd(200, begun.at(-1))}`;
    const { text, finish } = await generate(`start: %json ${JSON.stringify(schema)}`, {
      sampling: scripted(await engine.tokenize(written)),
      maxTokens: 40,
      closeAtLimit: true,
    });
    expect(finish.reason).toBe("end");
    expect(JSON.parse(text).a).not.toBe(0);
  });

  it("is cut where nobody asked for closing", async () => {
    const sampling = scripted(await engine.tokenize('["a long text that goes on and on"]'));
    const { finish } = await generate(`start: %json ${JSON.stringify(list)}`, {
      sampling,
      maxTokens: 4,
    });
    expect(finish.reason).toBe("length");
  });
});

describe("GBNF", () => {
  it("guides as Lark does", async () => {
    const grammar = await engine.compileGrammar({
      kind: "gbnf",
      text: 'root ::= "yes" | "no" " way"',
    });
    const { text, finish } = await collect(
      engine.generate({ prompt, sampling: greedy, maxTokens: 20, grammar }),
    );
    expect(["yes", "no way"]).toContain(text);
    expect(finish.reason).toBe("end");
  });

  it("refuses what llama.cpp could not bear", async () => {
    for (const text of ['root ::= root | "a"', 'root ::= "a"{5,2}', "root ::= (", ""]) {
      await expect(engine.compileGrammar({ kind: "gbnf", text })).rejects.toMatchObject({
        code: "invalid_grammar",
      });
    }
  });
});
