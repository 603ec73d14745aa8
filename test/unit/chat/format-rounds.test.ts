/** A tool round through the chat layer with each template of llama.cpp whose format is known. */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";
import { templatesDirectory } from "../../support/llama-cpp-templates.ts";

import { detectFormat } from "../../../src/chat/formats/formats.ts";
import { PromptBuilder } from "../../../src/chat/prompt/prompt.ts";
import { SpliceStore } from "../../../src/chat/prompt/splice-store.ts";
import { writeCalls } from "../../../src/chat/formats/write-calls.ts";
import { request, run, setUp } from "./chat-fixtures.ts";

const templates = !existsSync(templatesDirectory)
  ? []
  : readdirSync(templatesDirectory)
      .filter((name) => name.endsWith(".jinja"))
      .map((name) => ({ name, source: readFileSync(join(templatesDirectory, name), "utf8") }))
      .filter(({ source }) => detectFormat(source).name !== "json");

/** Spellings in the template that look like tokens. */
function specialsOf(source: string): string[] {
  const found = source.match(
    /<[|｜][^<>'"{}\s]{1,40}[|｜]>|\[\/?[A-Z_]{3,20}\]|<\/?(?:tool_call|think)>|<\/s>/gu,
  );
  return [...new Set(found), "<|im_end|>"];
}

const tools = [
  {
    name: "get.weather-v1.x",
    description: "Weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "City" } },
      required: ["city"],
    },
  },
];
/** Templates that write a turn with calls otherwise than their models do, or leave its reasoning out. */
const rewriting: ReadonlySet<string> = new Set([
  "Apriel-1.6-15b-Thinker-fixed.jinja",
  "LFM2.5-Instruct.jinja",
  "NVIDIA-Nemotron-Nano-v2.jinja",
  "Qwen-QwQ-32B.jinja",
  "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja",
  "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja",
  "deepseek-ai-DeepSeek-V3.1.jinja",
  "google-gemma-4-31B-it-interleaved.jinja",
  "google-gemma-4-31B-it.jinja",
  "llama-cpp-deepseek-r1.jinja",
  "unsloth-Apriel-1.5.jinja",
  // It writes the id that the client knows, not the one that the model made up.
  "upstage-Solar-Open-100B.jinja",
]);

/** What the template writes after a turn with a call. */
function endTokenOf({ template }: PromptBuilder): string {
  const toolCalls = [{ id: "call00001", name: "get.weather-v1.x", arguments: '{"city":"Rome"}' }];
  const turn = { role: "assistant" as const, content: "", toolCalls };
  const { text } = template.render([...request().messages, turn], {
    tools,
    generationPrompt: false,
  });
  return (
    /(?:<[|｜][^<>\n]*[|｜]>|<\/s>|<[A-Z_0-9]+>|\[e~\[|<turn\|>)(?=\s*$)/u.exec(text)?.[0] ??
    "<|im_end|>"
  );
}

describe.skipIf(templates.length === 0).each(templates)("$name", ({ name, source }) => {
  const format = detectFormat(source);
  const written = writeCalls(format.syntax, [["get.weather-v1.x", { city: "Rome" }]]);

  it("holds at its call, and goes on with the result", async () => {
    const specials = [...specialsOf(source), "[e~[", "<turn|>", "<SPECIAL_12>"];
    const thinks = setUp([], { template: source, specials });
    const { open, close } = format.reasoning;
    const prompt = new PromptBuilder(thinks.engine, {
      template: source,
      turns: new SpliceStore(0),
    });
    const { rendering } = await prompt.render(request().messages, { tools });
    const mode = rendering.reasoning === "off" ? "no" : rendering.reasoning;
    const after = `${close}${format.syntax.afterReasoning ?? ""}`;
    const thought = mode === "no" ? "" : mode === "open" ? `Hm.${after}` : `${open}Hm.${after}`;

    const answer = `${thought}${format.syntax.textOpen ?? ""}It is sunny.`;
    const endToken = endTokenOf(prompt);
    const rounds = [{ text: `${thought}${written}`, endToken }, answer];
    const { engine, chat } = setUp(rounds, { template: source, specials });
    const { events, content, finish } = await run(chat, request({ tools }), [["sun"]]);
    const calls = events.flatMap((event) => (event.type === "call-end" ? event.call : []));
    expect(calls.map((call) => [call.name, JSON.parse(call.arguments) as unknown])).toEqual([
      ["get.weather-v1.x", { city: "Rome" }],
    ]);
    expect(content).toMatch(/It is sunny\.$/u);
    expect(finish.reason).toBe("stop");
    const isRendered = chat.counters.rerenders > 0;
    const given = isRendered ? engine.last.request.prompt : engine.last.resumes[0]?.tokens;
    expect(engine.spell(given ?? [])).toContain("sun");
    expect(isRendered).toBe(rewriting.has(name));
  });
});
