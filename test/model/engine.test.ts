import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerateRequest, Generation, TokenLogprobs } from "../../src/engine/types.ts";
import {
  collect,
  endlessRequest,
  holdAtEnd,
  loadTestEngine,
  longRequest,
  readUntil,
  scripted,
} from "../support/engine.ts";
import { greedy } from "../support/sampling.ts";

// Long enough that a copy of its cells is worth more than computing them.
const question = [
  "<|im_start|>system\nYou are a helpful assistant. You answer in one short sentence, and you say",
  " so when you do not know. You never guess, and you name your sources.<|im_end|>\n",
  "<|im_start|>user\nWhat is the weather in Paris today, and will it rain tomorrow?<|im_end|>\n",
  "<|im_start|>assistant\n",
].join("");

let engine: Engine;
let prompt: Int32Array;

beforeAll(async () => {
  engine = await loadTestEngine({ contextSize: 4096 });
  prompt = await engine.tokenize(question);
});
afterAll(async () => {
  expect(await engine.checkIntegrity()).toBe("");
  await engine.close();
});

function run(request: Partial<GenerateRequest>) {
  return collect(engine.generate({ prompt, sampling: greedy, maxTokens: 24, ...request }));
}

it("a model of a size that llama.cpp has no name for is told with its parameters", () => {
  expect(engine.model.description).toMatch(/^qwen2 \d+\.\dM /u);
});

describe("generating", () => {
  it("gives the same tokens for the same request, cold and from the cache", async () => {
    const other = await loadTestEngine({ retainBetweenRequests: false });
    const cold = await collect(other.generate({ prompt, sampling: greedy, maxTokens: 24 }));
    const again = await collect(other.generate({ prompt, sampling: greedy, maxTokens: 24 }));
    await other.close();
    expect(again.tokens).toEqual(cold.tokens);
    expect(again.finish.usage.cachedTokens).toBe(0);
    expect(cold.tokens.length).toBe(cold.finish.usage.generatedTokens);

    await run({});
    const { finish } = await run({});
    expect(finish.usage.cachedTokens).toBe(prompt.length - 1);
    expect(finish.usage.prefilledTokens).toBe(1);
  });

  it("draws the same tokens with the same seed", async () => {
    const sampling = { ...greedy, temperature: 1.5, seed: 7 };
    // The same batches each time: the prompt is in the cache.
    await run({ maxTokens: 1 });
    const first = await run({ sampling });
    expect((await run({ sampling })).tokens).toEqual(first.tokens);
    expect((await run({ sampling: { ...sampling, seed: 8 } })).tokens).not.toEqual(first.tokens);
  });

  it("tells the probabilities that it drew by, and more of the model's own than OpenAI has", async () => {
    const sampling = { ...greedy, temperature: 0.7, topK: 5, seed: 7 };
    const told = async (request: Partial<GenerateRequest>) => {
      const generation = engine.generate({ prompt, sampling, maxTokens: 4, ...request });
      const logprobs: TokenLogprobs[] = [];
      for await (const event of generation)
        if (event.type === "text") logprobs.push(...(event.logprobs ?? []));
      return logprobs;
    };
    const drawn = await told({ topLogprobs: 1000, postSampling: true });
    expect(drawn).toHaveLength(4);
    for (const { token, logprob, top } of drawn) {
      expect(top.length).toBeLessThanOrEqual(5);
      expect(top.find(([id]) => id === token)![1]).toBe(logprob);
      expect(top.reduce((sum, [, each]) => sum + Math.exp(each), 0)).toBeCloseTo(1, 4);
    }
    const own = await told({ topLogprobs: 300 });
    expect(own.map(({ top }) => top.length)).toEqual([300, 300, 300, 300]);
  });

  it("emits the script, then an end token", async () => {
    const script = await engine.tokenize("Bonjour.");
    const { text, tokens, finish } = await run({ sampling: scripted(script) });
    expect(text).toBe("Bonjour.");
    expect(tokens.slice(0, -1)).toEqual(Array.from(script));
    expect(finish.reason).toBe("end");
  });

  it("stops at its limit and at a stop string, which it does not show", async () => {
    const script = await engine.tokenize("one two three four");
    expect((await run({ sampling: scripted(script), maxTokens: 2 })).finish).toMatchObject({
      reason: "length",
      usage: { generatedTokens: 2 },
    });
    const { text, finish } = await run({ sampling: scripted(script), stop: ["zzz", " three"] });
    expect(text).toBe("one two");
    expect(finish).toMatchObject({ reason: "stop_string", stopString: " three" });
  });

  it("never shows half a character", async () => {
    const sentence = "é 中文 🌦️ done";
    const script = await engine.tokenize(sentence);
    expect(script.length).toBeGreaterThan(8);
    const pieces: string[] = [];
    for await (const event of engine.generate({ prompt, sampling: scripted(script) })) {
      if (event.type === "text") pieces.push(event.text);
    }
    expect(pieces.join("")).toBe(sentence);
    expect(pieces.every((piece) => !piece.includes("\ufffd"))).toBe(true);
  });

  it("spells out control tokens when asked, and guards them", async () => {
    expect(engine.detokenize(prompt)).toBe(question);
    const special = engine.model.specialTokens.find(({ text }) => text === "<|im_start|>")!;
    expect(prompt[0]).toBe(special.id);
    const guarded = await engine.tokenize("<\u0001|im_start|>user", "\u0001");
    expect(guarded).not.toContain(special.id);
    expect(engine.detokenize(guarded)).toBe("<|im_start|>user");
  });

  it("refuses a prompt that leaves no room", async () => {
    const long = new Int32Array(engine.cache.cellsPerSequence).fill(prompt[0]!);
    expect(() => engine.generate({ prompt: long, sampling: greedy })).toThrow(
      expect.objectContaining({ code: "context_length_exceeded", param: "prompt" }),
    );
    expect(() => engine.generate({ prompt, sampling: { ...greedy, topP: 2 } })).toThrow(
      expect.objectContaining({ code: "invalid_value" }),
    );
  });
});

describe("holding", () => {
  async function hold(): Promise<Generation> {
    const sampling = scripted(await engine.tokenize("Let me see."));
    const generation = engine.generate({ prompt, sampling, pause: holdAtEnd });
    await readUntil(generation, "hold");
    return generation;
  }

  it("prefills only what a resume adds", async () => {
    const generation = await hold();
    const before = generation.tokens.length;
    const result = await engine.tokenize("\n<|im_start|>user\n18 degrees<|im_end|>\n");
    generation.resume({ tokens: result, keepPending: true, maxTokens: 4 });
    expect(generation.tokens.length).toBe(before + result.length);
    const { usage } = await readUntil(generation, "hold");
    expect(usage).toMatchObject({
      promptTokens: prompt.length,
      // The end token that waited outside the cache is new to it, too.
      resumedTokens: result.length + 1,
      prefilledTokens: prompt.length - usage.cachedTokens + result.length + 1,
      recomputedTokens: 0,
    });
    generation.release();
    expect((await collect(generation)).finish.reason).toBe("released");
  });

  it("drops the pending token on request", async () => {
    const generation = await hold();
    const before = generation.tokens.length;
    const result = await engine.tokenize("\nmore");
    generation.resume({ tokens: result, keepPending: false, maxTokens: 4 });
    expect(generation.tokens.length).toBe(before - 1 + result.length);
    const { usage } = await readUntil(generation, "hold");
    expect(usage.prefilledTokens).toBe(prompt.length - usage.cachedTokens + result.length);
    generation.release();
    await collect(generation);
  });

  it("holds and goes on where the caller asked", async () => {
    const generation = engine.generate(endlessRequest(prompt));
    await readUntil(generation, "text");
    generation.pause();
    const { reason, pendingToken } = await readUntil(generation, "hold");
    expect(reason).toBe("requested");
    generation.resume({ tokens: prompt.subarray(0, 1), keepPending: pendingToken });
    const { finish } = await collect(generation);
    expect(finish).toMatchObject({ reason: "end", usage: { generatedTokens: 3501 } });
  });

  it("fails a hold that nobody resumes", async () => {
    const other = await loadTestEngine({ holdLeaseMs: 50 });
    const generation = other.generate({
      prompt,
      sampling: scripted(prompt.subarray(0, 2)),
      pause: holdAtEnd,
    });
    await expect(collect(generation)).rejects.toMatchObject({ code: "lease_expired" });
    await other.close();
  });
});

describe("cancelling", () => {
  // An event may have many tokens.
  it.each([0, 2])("by a signal after %i events", async (count) => {
    const controller = new AbortController();
    if (count === 0) controller.abort();
    const generation = engine.generate({
      ...endlessRequest(prompt),
      signal: controller.signal,
    });
    let seen = 0;
    let last: unknown;
    for await (const event of generation) {
      last = event;
      if (++seen === count) controller.abort();
    }
    expect(last).toMatchObject({ type: "finish", reason: "cancelled" });
  });

  it("by leaving the loop", async () => {
    for await (const event of engine.generate(endlessRequest(prompt))) {
      if (event.type === "text") break;
    }
    await expect.poll(() => engine.stats().running).toBe(0);
  });
});

describe("running side by side", () => {
  it("a consumer that does not read stops only its own sequence", async () => {
    const slow = engine.generate(longRequest(prompt, 1500));
    // As long as the test may take: on a software device these are minutes.
    const timeout = 3_600_000;
    await expect.poll(() => slow.tokens.length, { timeout }).toBe(prompt.length + 1024);
    const { finish } = await collect(engine.generate(longRequest(prompt, 50)));
    expect(finish.usage.generatedTokens).toBe(51);
    expect(slow.tokens.length).toBe(prompt.length + 1024);
    const { finish: slowFinish } = await collect(slow);
    expect(slowFinish).toMatchObject({ reason: "end", usage: { generatedTokens: 1501 } });
  });

  it("queues what exceeds the parallel sequences, and refuses what exceeds the queue", async () => {
    const other = await loadTestEngine({ parallel: 1, maxQueue: 2, contextSize: 4096 });
    // Cannot end before it is read: the one event that is read and the window hold 2,048 tokens at most.
    const generations = [other.generate(longRequest(prompt, 3000))];
    await readUntil(generations[0]!, "text");
    generations.push(
      other.generate(longRequest(prompt, 3)),
      other.generate(longRequest(prompt, 3)),
    );
    expect(() => other.generate(longRequest(prompt, 3))).toThrow(
      expect.objectContaining({ code: "queue_full", status: 429 }),
    );
    const ends = await Promise.all(generations.map(collect));
    expect(ends.map(({ finish }) => finish.reason)).toEqual(["end", "end", "end"]);
    await other.close();
  });
});
