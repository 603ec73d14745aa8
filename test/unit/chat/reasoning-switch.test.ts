// Whether a model thinks: what its template says, what the request says, what the server's option says.
import { describe, expect, it } from "vitest";
import { Chat } from "../../../src/chat/chat.ts";
import type { TemplateVariables } from "../../../src/chat/types.ts";
import { FakeEngine } from "./fake-engine.ts";
import { chatml, request, run, weather } from "./chat-fixtures.ts";

const turns =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
// A template's last line end is dropped.
const header = '<|im_start|>assistant{{ "\n" }}';
const opening = "<|im_start|>assistant\n";
const templates = {
  /** Nothing of thinking, as ChatML is. */
  never: `${turns}${header}`,
  /** As Qwen 3: thinks unless it is told not to. */
  qwen: `${turns}${header}{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}`,
  /** As DeepSeek V3.1 and Laguna: does not think unless it is told to. */
  shy: `${turns}${header}{% if enable_thinking is defined and enable_thinking %}<think>{% else %}</think>{% endif %}`,
  /** As Granite 3.3, by another name; only the system message differs. */
  granite: `{% if thinking %}Think in <think></think>.{% endif %}${turns}${header}`,
  /** As MiniMax M3. */
  mode: `${turns}${header}{% if thinking_mode is defined and thinking_mode == "disabled" %}</think>{% elif thinking_mode is defined and thinking_mode == "enabled" %}<think>{% endif %}`,
  /** The other way about. */
  skip: `${turns}${header}{% if skip_thinking %}<think></think>{% endif %}`,
  /** As Apertus: the answer begins alike. */
  unknown: `{% if enable_thinking %}Deliberate. {% endif %}${turns}${header}`,
  /** As R1: thinks whatever is said. */
  always: `${turns}${header}<think>\n`,
  /** As gpt-oss, whose efforts are printed. */
  effort: `Effort: {{ reasoning_effort | default("medium") }}. ${turns}${header}<think>`,
};

type Name = keyof typeof templates;

function chatOf(name: Name, reasoning: "auto" | "on" | "off" = "auto", rounds: string[] = []) {
  const engine = new FakeEngine({ template: templates[name], rounds });
  return { engine, chat: new Chat(engine, { reasoning }) };
}

/** What stands behind the assistant's header, or before the first turn. */
async function prompt(
  name: Name,
  variables: TemplateVariables,
  reasoning?: "auto" | "on" | "off",
): Promise<string> {
  const { chat } = chatOf(name, reasoning);
  const text = await chat.promptText({
    messages: [{ role: "user", content: "Hi" }],
    tools: [],
    templateVariables: variables,
  });
  const [before, after] = [text.split("<|im_start|>")[0]!, text.split(opening).at(-1)!];
  return before + after;
}

const off = { enable_thinking: false };
const on = { enable_thinking: true };

describe("a template is told to think", () => {
  it.each<[Name, string, TemplateVariables, string]>([
    ["shy", "by default", {}, "<think>"],
    ["shy", "off", off, "</think>"],
    ["shy", "by an effort", { reasoning_effort: "low" }, "<think>"],
    ["shy", "not at all", { reasoning_effort: "none" }, "</think>"],
    ["shy", "minimally", { reasoning_effort: "minimal" }, "</think>"],
    ["shy", "by the switch, whatever the effort", { reasoning_effort: "none", ...on }, "<think>"],
    ["qwen", "by default", {}, ""],
    ["qwen", "off", off, "<think>\n\n</think>\n\n"],
    ["granite", "by default as it likes", {}, ""],
    ["granite", "on, by its own name", on, "Think in <think></think>."],
    ["granite", "by an effort", { reasoning_effort: "high" }, "Think in <think></think>."],
    ["granite", "off, where it was said in its own name", { ...on, thinking: false }, ""],
    ["unknown", "not by default", {}, ""],
    ["unknown", "on", on, "Deliberate. "],
    ["mode", "by default as it likes", {}, ""],
    ["mode", "on", on, "<think>"],
    ["mode", "off", off, "</think>"],
    ["skip", "off", off, "<think></think>"],
    ["skip", "on", on, ""],
    ["effort", "by default", {}, "Effort: medium. <think>"],
    ["effort", "a little", { reasoning_effort: "minimal" }, "Effort: minimal. <think>"],
    [
      "effort",
      "no effort it does not know",
      { reasoning_effort: "none" },
      "Effort: medium. <think>",
    ],
  ])("%s: %s", async (name, _title, variables, expected) => {
    expect(await prompt(name, variables)).toBe(expected);
  });

  it("as the server's option says, unless the request does", async () => {
    expect(await prompt("shy", {}, "off")).toBe("</think>");
    expect(await prompt("granite", {}, "on")).toBe("Think in <think></think>.");
    expect(await prompt("qwen", {}, "off")).toBe("<think>\n\n</think>\n\n");
    expect(await prompt("qwen", on, "off")).toBe("");
    expect(await prompt("qwen", { reasoning_effort: "high" }, "off")).toBe("");
    expect(await prompt("qwen", off, "on")).toBe("<think>\n\n</think>\n\n");
  });

  it("to keep the reasoning of earlier turns", async () => {
    const kept = "{% if clear_thinking is not defined or clear_thinking %}cleared{% endif %}";
    const engine = new FakeEngine({ template: `${kept}${templates.qwen}` });
    const text = (variables: TemplateVariables): Promise<string> =>
      new Chat(engine).promptText({
        messages: [{ role: "user", content: "Hi" }],
        tools: [],
        templateVariables: variables,
      });
    expect(await text({})).not.toContain("cleared");
    expect(await text({ clear_thinking: true })).toContain("cleared");
  });
});

describe("the answer", () => {
  const document = { kind: "json_object" } as const;
  const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false, document } as const;
  const start = async (name: Name, variables: TemplateVariables): Promise<string> => {
    const { chat, engine } = chatOf(name, "auto", ["{}"]);
    await run(
      chat,
      request({ tools: [], toolMode: "none", guidance, templateVariables: variables }),
    );
    return /^start: (.*)$/mu.exec(engine.grammars[0]!.text)![1]!;
  };

  it.each<[Name, string, TemplateVariables, RegExp]>([
    ["never", "never thinks", {}, /^\s*body$/u],
    ["qwen", "may think", {}, /^\(opened thought .*\)\? body$/u],
    ["qwen", "does not where the prompt has thought", off, /^\s*body$/u],
    ["skip", "may think", {}, /^\(opened thought .*\)\? body$/u],
    ["shy", "is thinking", {}, /^thought .*BLANKS\? body$/u],
    ["shy", "does not", off, /^\s*body$/u],
    ["granite", "does not where nobody asked for it", {}, /^\s*body$/u],
    ["granite", "may where somebody did", on, /^\(opened thought .*\)\? body$/u],
    ["always", "is thinking", off, /^thought .*BLANKS\? body$/u],
  ])("%s: %s", async (name, _title, variables, expected) => {
    expect(await start(name, variables)).toMatch(expected);
  });

  it("of a model whose vocabulary has the marker and whose template has not is a document at once", async () => {
    const specials = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"];
    const engine = new FakeEngine({ template: chatml, specials, rounds: ["{}"] });
    await run(new Chat(engine), request({ tools: [], toolMode: "none", guidance }));
    expect(engine.grammars[0]!.text).not.toContain("think");
  });

  it("may not begin with the marker where thinking is off and calls are guided", async () => {
    const { chat, engine } = chatOf("qwen", "auto", ["Hi"]);
    await run(chat, request({ tools: [weather], toolMode: "external", templateVariables: off }));
    expect(engine.grammars[0]!.text).toMatch(/^FREE: .*<think>/mu);
  });

  it("is understood where a model thinks all the same", async () => {
    const { chat } = chatOf("shy", "auto", ["<think>Hm.</think>Yes."]);
    const quiet = request({ tools: [], toolMode: "none", templateVariables: off });
    const { events, content } = await run(chat, quiet);
    expect(content).toBe("Yes.");
    const thought = events.map((event) => (event.type === "reasoning" ? event.text : ""));
    expect(thought.join("")).toBe("Hm.");
  });

  it("begins in reasoning where the prompt has opened it", async () => {
    const { chat } = chatOf("shy", "auto", ["Hm.</think>Yes."]);
    const { events, content } = await run(chat, request({ tools: [], toolMode: "none" }));
    expect(content).toBe("Yes.");
    expect(events.filter((event) => event.type === "reasoning").length).toBeGreaterThan(0);
  });
});
