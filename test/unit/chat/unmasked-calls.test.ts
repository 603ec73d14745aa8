/** Calls that the parser finds in what was free text for the grammar: the fake engine writes them whatever it says. */

import { describe, expect, it } from "vitest";
import { Chat } from "../../../src/chat/chat.ts";
import { formats } from "../../../src/chat/formats/formats.ts";
import { writeCalls } from "../../../src/chat/formats/write-calls.ts";
import { OutputParser } from "../../../src/chat/parser/output-parser.ts";
import type { ChatRequest, JsonSchema, ToolDefinition } from "../../../src/chat/types.ts";
import type { Guidance } from "../../../src/guidance/types.ts";
import { tools as knownTools } from "../../support/format-tools.ts";
import { request, run, setUp } from "./chat-fixtures.ts";

const auto: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };
const tools: ToolDefinition[] = knownTools.map((tool) => ({ ...tool, strict: true }));
const rome = '{"name": "get_weather", "arguments": {"city": "Rome"}}';
const wrong = rome.replace('"Rome"', "5");

async function say(
  text: string,
  partial: Partial<ChatRequest> = {},
  { format = "qwen", refuses = false } = {},
) {
  const { engine } = setUp([text]);
  engine.refusesGrammars = refuses;
  const chat = new Chat(engine, { toolFormat: format });
  return run(chat, request({ tools, toolMode: "external", ...partial }));
}

const fence = (text: string): string => `\`\`\`json\n${text}\n\`\`\``;

describe("a call in another form than the grammar's", () => {
  it.each([
    ["bare", wrong, "qwen"],
    ["in a block", fence(wrong), "qwen"],
    ["in a list", `[${wrong}]`, "qwen"],
    ["with other blanks", wrong.replace(": ", ":"), "qwen"],
    ["behind another key", wrong.replace("{", '{"type": "function", '), "qwen"],
    ["its name last", '{"arguments": {"city": 5}, "name": "get_weather"}', "qwen"],
    ["Llama's, with other blanks", wrong.replace("{", "{ "), "llama3"],
    ["Llama's, behind another key", wrong.replace("{", '{"type": "function", '), "llama3"],
    ["Llama's, behind a mark", `<|python_tag|>${wrong}`, "llama3"],
  ])("is validated: %s", async (_title, text, format) => {
    const { finish } = await say(text, {}, { format });
    expect(finish.calls).toHaveLength(1);
    expect(finish.calls[0]?.problem).toBe("/city must be string");
  });

  it("fits its schema, and nothing is said of it", async () => {
    const { finish, content } = await say(`I look.\n${rome}`);
    expect(content).toBe("I look.");
    expect(finish.calls).toMatchObject([{ name: "get_weather" }]);
    expect(finish.calls[0]).not.toHaveProperty("problem");
  });

  it.each([
    ["bare", rome],
    ["in a block", fence(rome)],
    ["in tags", `<tool_call>\n${rome}\n</tool_call>`],
  ])("is text where its tool may not be called: %s", async (_title, text) => {
    for (const refuses of [false, true]) {
      const { finish, content } = await say(
        text,
        { tools: knownTools, guidance: { ...auto, allowed: ["ping"] } },
        { refuses },
      );
      expect(finish).toMatchObject({ reason: "stop", calls: [] });
      expect(content).toBe(text);
    }
  });

  it.each([
    ["lines", `${rome}\n${rome}`, rome],
    ["a list", `[${rome}, ${rome}]`, `${rome}]`],
    ["a line and tags", `${rome}\n<tool_call>\n${rome}\n</tool_call>`, "</tool_call>"],
  ])("is text behind another one where there may be one: %s", async (_title, text, end) => {
    const { finish, content } = await say(text, { guidance: { ...auto, parallel: false } });
    expect(finish.calls).toHaveLength(1);
    expect(content.endsWith(end)).toBe(true);
    expect((await say(text)).finish.calls).toHaveLength(2);
  });
});

/** Of formats whose messages have headers: text and, in it, the call that is barred. */
const headed: [format: string, call: string, barred: string, told: string][] = [
  [
    "gpt-oss",
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Rome"}<|call|>',
    '<|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"query": "x"}',
    '<|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"query": "x"}',
  ],
  [
    "functionary-v3.2",
    'get_weather\n{"city":"Rome"}',
    '>>>search\n{"query": "x"}',
    '>>>search\n{"query": "x"}',
  ],
  [
    "muse-glimmer",
    ' to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Rome</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
    '<|eom|><|start|>assistant to=search<|message|><atem:function_calls>\n<atem:invoke name="search">\n<atem:parameter name="query">x</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
    '<|start|>assistant to=search<|message|><atem:function_calls>\n<atem:invoke name="search">\n<atem:parameter name="query">x</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
  ],
];

describe.each(headed)("a barred call behind a header, %s", (name, call, barred, told) => {
  const format = formats.find((one) => one.name === name)!;
  const search = { type: "object", properties: { query: { type: "string" } } };
  const callable = new Map<string, JsonSchema>([
    ...knownTools.map((tool): [string, JsonSchema] => [tool.name, tool.parameters]),
    ["search", search],
  ]);

  function parse(text: string, offered: typeof callable, most: number, isAllowed = () => true) {
    const takesCall = (called: string, index: number) =>
      index < most && (called !== "search" || isAllowed());
    const parser = new OutputParser({ format, offered, takesCall, reasoning: "no" });
    const events = [...text].flatMap((character) => parser.push(character));
    events.push(...parser.finish(true));
    const texts = events.map((one) => (one.type === "content" ? one.text : ""));
    return { names: parser.calls.map((one) => one.name), text: texts.join("") };
  }

  it("is text behind a call, where there may be one", () => {
    expect(parse(call + barred, callable, 2)).toEqual({
      names: ["get_weather", "search"],
      text: "",
    });
    expect(parse(call + barred, callable, 1)).toEqual({ names: ["get_weather"], text: told });
  });

  it("is text where its tool may not be called, and the next one is a call", () => {
    const offered = new Map([...callable].filter(([tool]) => tool !== "search"));
    const first = barred.replace(/^(?:<\|eom\|>)?(?:<\|start\|>assistant|>>>)/u, "");
    const parsed = parse(first, offered, 2, () => false);
    expect(parsed.names).toEqual([]);
    expect(parsed.text.trim()).toBe(first.trim());
    expect(parse(call + barred, offered, 2, () => false)).toEqual({
      names: ["get_weather"],
      text: told,
    });
  });
});

describe.each(formats)("$name", (format) => {
  const { syntax } = format;

  it("finds all calls that the grammar writes in the grammar's form", () => {
    if (syntax.argumentStyle.style !== "json") return;
    const written = writeCalls(syntax, [
      ["get_weather", { city: "Rome" }],
      ["ping", {}],
      ["get_weather", { city: "Oslo" }],
    ]);
    const offered = new Map(tools.map((tool) => [tool.name, tool.parameters]));
    const { textOpen = "" } = syntax;
    const words = textOpen === "" ? ["", "I look.\n", "I look. "] : [""];
    const isBare = syntax.sectionOpen === "" && syntax.callOpen.startsWith("{");
    for (const before of isBare ? words.slice(0, 2) : words) {
      const parser = new OutputParser({ format, offered, reasoning: "no" });
      parser.push(before + written);
      parser.finish(true);
      expect(parser.calls.map((call) => [call.name, parser.isGuided(call)])).toEqual([
        ["get_weather", true],
        ["ping", true],
        ["get_weather", true],
      ]);
    }
  });
});
