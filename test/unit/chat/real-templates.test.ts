/** The suffix derivation over the templates that come with llama.cpp's source, where it is present. */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";
import { templatesDirectory } from "../../support/llama-cpp-templates.ts";

import { Continuer } from "../../../src/chat/hold/continuation.ts";
import { reasoningOf } from "../../../src/chat/formats/format.ts";
import { detectFormat, qwen } from "../../../src/chat/formats/formats.ts";
import { PromptBuilder } from "../../../src/chat/prompt/prompt.ts";
import { SpliceStore } from "../../../src/chat/prompt/splice-store.ts";
import { Round } from "../../../src/chat/answer/round.ts";
import { type GeneratedTurn, SuffixDeriver, withGuard } from "../../../src/chat/prompt/suffix.ts";
import {
  ChatTemplate,
  type RenderMessage,
  type Rendering,
} from "../../../src/chat/template/template.ts";
import type { ChatMessage, ToolCall, ToolDefinition } from "../../../src/chat/types.ts";
import { FakeEngine } from "./fake-engine.ts";

const names = existsSync(templatesDirectory)
  ? readdirSync(templatesDirectory).filter((name) => name.endsWith(".jinja"))
  : [];
if (names.length === 0)
  console.log("skipped: llama.cpp's templates are not in the cache; npm start fetches its source");

const tools: ToolDefinition[] = [
  {
    name: "get_weather",
    description: "Get the weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "City" } },
      required: ["city"],
    },
  },
];
const opening: ChatMessage[] = [
  { role: "system", content: "You help." },
  { role: "user", content: "Weather in Rome and Oslo?" },
];
const rounds = [["Rome"], ["Oslo", "Bonn"]];
const endToken =
  /(?:<[|｜][^<>\n]*[|｜]>|<\/s>|<[A-Z_0-9]+>|\[e~\[|<sep>|<turn\|>|<end_of_turn>)(?=\s*$)/u;

type Outcome = "extends" | "rewrites" | "ignores results" | "refuses";

interface Result {
  name: string;
  outcome: Outcome;
  /** Rounds that had a suffix. */
  roundCount: number;
  note: string;
}

/** What a model trained on this template would say: its own form, with JSON of its own spacing. */
function generate(
  template: ChatTemplate,
  before: readonly RenderMessage[],
  prompt: Rendering,
  calls: ToolCall[],
): GeneratedTurn {
  const reasoning = prompt.text.trimEnd().endsWith("<think>") ? { reasoning: "I look it up." } : {};
  const message = { role: "assistant" as const, content: "", toolCalls: calls, ...reasoning };
  const { text, marks } = renderOrNull(template, [...before, message]) ?? {
    text: "",
    marks: prompt.marks,
  };
  const start = withGuard(prompt, marks.guard) ?? "";
  const end = endToken.exec(text)?.[0] ?? "";
  if (!text.startsWith(start)) return { message, raw: "", endToken: end };
  const written = text.slice(start.length).replaceAll(marks.guard, "");
  const raw = (end === "" ? written : written.slice(0, written.lastIndexOf(end))).replaceAll(
    '": ',
    '":',
  );
  return { message, raw, endToken: end };
}

function renderOrNull(
  template: ChatTemplate,
  messages: readonly RenderMessage[],
): Rendering | null {
  try {
    return template.render(messages, { tools, generationPrompt: false });
  } catch {
    return null;
  }
}

async function tryTemplate(name: string): Promise<Result> {
  const source = readFileSync(join(templatesDirectory, name), "utf8");
  const specialTokens = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</s>"].map((text, id) => ({
    id,
    text,
  }));
  const model = {
    chatTemplate: source,
    bosToken: "<s>",
    eosToken: "</s>",
    addBos: false,
    specialTokens,
  };
  let roundCount = 0;
  try {
    const reasoning = reasoningOf(detectFormat(source), source);
    const template = new ChatTemplate(source, model, reasoning, qwen);
    const deriver = new SuffixDeriver(template, reasoning, model.eosToken);
    let before: readonly RenderMessage[] = opening;
    let prompt = template.render(before, { tools, generationPrompt: true });
    const strategies: string[] = [];
    for (const cities of rounds) {
      const calls = cities.map((city) => ({
        id: `call_${city}`,
        name: "get_weather",
        arguments: JSON.stringify({ city }),
      }));
      const turn = generate(template, before, prompt, calls);
      const after = calls.map((call): ChatMessage => ({
        role: "tool",
        toolCallId: call.id,
        name: call.name,
        content: `Sunny: ${call.id}`,
      }));
      const whole = renderOrNull(template, [...before, turn.message, ...after]);
      if (whole !== null && !whole.text.includes("Sunny: "))
        return { name, outcome: "ignores results", roundCount, note: "" };
      const suffix = await deriver.derive({ tools, prompt, before, turn, after });
      if (suffix === null) {
        template.render([...before, turn.message, ...after], { tools, generationPrompt: true });
        return { name, outcome: "rewrites", roundCount, note: "" };
      }
      for (const message of after)
        expect(suffix.text.replaceAll(suffix.guard, "")).toContain(message.content);
      expect(suffix.text).not.toContain('"Rome"');
      expect(suffix.rendering.text.endsWith(suffix.text)).toBe(true);
      expect(suffix.rendering.text.startsWith(withGuard(prompt, suffix.guard) ?? "?")).toBe(true);
      strategies.push(suffix.strategy);
      roundCount += 1;
      before = [...before, suffix.turn, ...after];
      prompt = suffix.rendering;
    }
    return { name, outcome: "extends", roundCount, note: strategies.join(", ") };
  } catch (error) {
    return {
      name,
      outcome: "refuses",
      roundCount,
      note: error instanceof Error ? error.message : String(error),
    };
  }
}

describe.skipIf(names.length === 0)("templates of llama.cpp", () => {
  it("are mostly continued without rendering history again", { timeout: 60_000 }, async () => {
    const results = await Promise.all(names.map(tryTemplate));
    const count = (outcome: Outcome): number =>
      results.filter((result) => result.outcome === outcome).length;
    const figures = {
      templates: names.length,
      firstRound: results.filter((result) => result.roundCount >= 1).length,
      bothRounds: count("extends"),
      rewrites: count("rewrites"),
      ignoresResults: count("ignores results"),
      refuses: count("refuses"),
    };
    console.log(JSON.stringify(figures));
    if (process.env.FERMATA_TEST_VERBOSE) {
      for (const { name, outcome, roundCount, note } of results)
        console.log(outcome.padEnd(16), roundCount, name, note);
    }
    expect(results.filter((result) => result.note.includes("expected"))).toEqual([]);
    expect(figures.bothRounds).toBeGreaterThanOrEqual(40);
  });

  it(
    "begin a result as they end it: what is prefilled early is what comes",
    { timeout: 60_000 },
    async () => {
      const outcomes = await Promise.all(names.map(guessResults));
      const count = (outcome: string): number => outcomes.filter((it) => it === outcome).length;
      const figures = {
        rightGuesses: count("right"),
        noPlace: count("no_place"),
        rerender: count("rerender"),
        refuses: count("refuses"),
      };
      console.log(JSON.stringify(figures));
      expect(outcomes.filter((it) => it.startsWith("wrong"))).toEqual([]);
      expect(figures.rightGuesses).toBeGreaterThanOrEqual(40);
    },
  );
});

/** Blanks that templates trim, what JSON escapes, what may merge, what is longer than a character. */
const longResult =
  ' \n He said: "\\ is no \t tab"\n\n{"é": [1, "😀"]} <b>\r\n </tool_call>12345 and that is the end of it';
const cuts = [0, 3, 17, 30, 52, 80];

/** A round of two calls: the first one's output comes in parts, then the second one's. */
async function guessResults(name: string): Promise<string> {
  const engine = new FakeEngine({ template: readFileSync(join(templatesDirectory, name), "utf8") });
  try {
    const prompts = new PromptBuilder(engine, { turns: new SpliceStore(0) });
    const prompt = prompts.template.render(opening, { tools, generationPrompt: true });
    const cities = prompts.template.takesSeveralCalls ? ["Rome", "Oslo"] : ["Rome"];
    const calls = cities.map((city) => ({
      id: `call_${city}`,
      name: "get_weather",
      arguments: JSON.stringify({ city }),
    }));
    const request = {
      scope: { tools },
      round: new Round({
        rendering: prompt,
        before: opening,
        format: prompts.format,
        reasoning: "no",
        offered: null,
        begun: "",
      }),
      turn: generate(prompts.template, opening, prompt, calls),
      heldTokens: 10,
      maxTokens: 10,
    };
    const outputs = calls.map(({ id }) => ({
      callId: id,
      name: "get_weather",
      content: longResult,
    }));
    const continuer = new Continuer(engine, prompts);
    const whole = await continuer.continue({ ...request, outputs });
    if (whole?.kind !== "resume") return "rerender";
    for (const open of outputs.keys()) {
      for (const end of cuts) {
        const known = outputs.map((output, index) =>
          index === open ? { ...output, content: longResult.slice(0, end) } : output,
        );
        const begun = await continuer.begin({ ...request, outputs: known }, open);
        if (begun === "no_place" || begun === "full") return begun;
        const isRight =
          begun.keepPending === whole.keepPending &&
          begun.tokens.every((token, index) => token === whole.tokens[index]);
        if (!isRight)
          return `wrong: ${name}, result ${open} at ${end}: ${engine.spell(begun.tokens).slice(-40)}`;
      }
    }
    return "right";
  } catch {
    return "refuses";
  }
}
