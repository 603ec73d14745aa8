/**
 * Results that are prefilled while their tool runs, on the real tokenizer and cache: what is resumed is
 * token for token what it is without, and every row is counted where it enters llama_decode.
 */

import { describe, expect, it } from "vitest";

import type { EngineStats, Generation, GenerationEvent } from "../../src/engine/types.ts";
import { defineTool } from "../../src/tools/tool-builder.ts";
import { runToolLoop } from "../../src/tools/tool-loop.ts";
import type { ToolReport } from "../../src/tools/types.ts";
import { collect, holdAtEnd, readUntil, scripted } from "../support/engine.ts";
import { callText } from "../support/scripted-server.ts";
import { engineOfTests, watchedChat } from "../support/watched-engine.ts";

/** Text in which words, blanks, digits and signs merge over the places where it is cut. */
const story = Array.from(
  { length: 20 },
  (_, index) =>
    `${index * 977}. The keeper said: "the lantern isn't  lit" — at 12:0${index % 10}\n\n\tété 中文 😀\n`,
).join("");

describe.each(["streams", "unified"] as const)("with %s", (kvLayout) => {
  const currentEngine = engineOfTests({ kvLayout, contextSize: 8192 });

  /**
   * A call, a tool that tells its output in parts of this many characters (0: only at its end) and ends
   * when `least` rows were prefilled meanwhile, an answer.
   */
  async function answer(part: number, least: number) {
    const engine = currentEngine();
    const runs: Generation[] = [];
    const chat = watchedChat(engine, (generation) => runs.push(generation));
    const before = engine.stats();
    const telling = defineTool("tell", "Tells a story.").run(async (_args, { report }) => {
      const told = (it: ToolReport): void => void report(it);
      for (let at = 0; part > 0 && at < story.length; at += part) {
        told({ type: "output", text: story.slice(at, at + part) });
        await new Promise((resolve) => setImmediate(resolve));
      }
      while (engine.stats().extendedTokens < before.extendedTokens + least)
        await new Promise((resolve) => setTimeout(resolve, 5));
      return story;
    });
    const end = "<|im_end|>";
    const script = await engine.tokenize(`${callText("tell", {})}${end}It is told.${end}`);
    const request = {
      messages: [{ role: "user" as const, content: `Tell the story of ${kvLayout} by ${part}.` }],
      sampling: scripted(script),
      stop: [],
      owner: "test",
    };
    let content = "";
    for await (const event of runToolLoop(chat, request, [telling]))
      if (event.type === "content") content += event.text;
    const after = engine.stats();
    const count = (name: keyof EngineStats): number => after[name] - before[name];
    return { content, tokens: [...(runs[0]?.tokens ?? [])], count, counters: chat.counters };
  }

  it("a result told in parts is resumed with the same tokens, and computed once", async () => {
    const whole = await answer(0, 0);
    const section = whole.count("resumedTokens");
    const least = Math.floor(0.85 * section);
    for (const part of [7, 331]) {
      const told = await answer(part, least);
      expect(told.content).toBe("It is told.");
      expect(told.tokens.slice(told.count("promptTokens"))).toEqual(
        whole.tokens.slice(whole.count("promptTokens")),
      );
      expect(told.count("resumedTokens")).toBe(section);
      expect(told.count("discardedTokens")).toBe(0);
      expect(told.count("recomputedTokens")).toBe(0);
      expect(told.count("extendedTokens")).toBeGreaterThanOrEqual(least);
      expect(told.count("extendedTokens")).toBeLessThan(section);
      // Rows of the prompt, the result and the answer; each round's last token is never computed alone.
      const prompt = told.count("promptTokens") - told.count("cachedTokens");
      expect(told.count("prefilledTokens")).toBe(prompt + section);
      expect(told.count("auditedRows")).toBe(prompt + section + told.count("generatedTokens") - 2);
      expect(told.counters).toMatchObject({ resumes: 1, rerenders: 0, unextendedHolds: 0 });
    }
  });

  it("the answer is the same whatever was guessed", async () => {
    const engine = currentEngine();
    const prompt = await engine.tokenize("<|im_start|>user\nWho keeps the light?");
    const result = await engine.tokenize(`\n<|im_start|>user\n${story.slice(0, 700)}`);
    const wrong = await engine.tokenize(story.slice(700, 1400));
    const guesses = [
      [],
      [result.subarray(0, 50), result.subarray(0, 200)],
      [Int32Array.from([...result.subarray(0, 100), ...wrong])],
    ];
    const ends: { tokens: readonly number[]; logprob: number }[] = [];
    for (const guess of guesses) {
      const generation = engine.generate({
        prompt,
        sampling: scripted(prompt.subarray(0, 5)),
        pause: holdAtEnd,
        topLogprobs: 0,
      });
      await readUntil(generation, "hold");
      for (const tokens of guess) {
        generation.extend({ tokens, keepPending: true });
        await readUntil(generation, "extended");
      }
      generation.resume({ tokens: result, keepPending: true, maxTokens: 1 });
      const text: Extract<GenerationEvent, { type: "text" }> = await readUntil(generation, "text");
      ends.push({
        tokens: [...generation.tokens],
        logprob: text.logprobs?.[0]?.logprob ?? NaN,
      });
      generation.cancel();
      await collect(generation);
    }
    for (const end of ends) {
      expect(end.tokens).toEqual(ends[0]?.tokens);
      expect(end.logprob).toBeCloseTo(ends[0]?.logprob ?? NaN, 1);
    }
  });
});
