// What models of the field write, through the chat: the mask lets all of it through, and the round ends as they mean it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../src/chat/types.ts";
import { Chat } from "../../src/chat/chat.ts";
import { scripted } from "../support/engine.ts";
import { templatesDirectory } from "../support/llama-cpp-templates.ts";
import { hasMasks } from "../support/masks.ts";
import { engineOfTests } from "../support/watched-engine.ts";

const text = { type: "string" };
const object = (properties: JsonSchema, required: string[]): JsonSchema => ({
  type: "object",
  properties,
  required,
});
const tools = [
  {
    name: "get_weather",
    description: "Weather",
    parameters: object({ city: text, days: { type: "integer" } }, ["city"]),
  },
  {
    name: "write_file",
    description: "Writes a file",
    parameters: object({ path: text, content: text }, ["path", "content"]),
  },
  {
    name: "zip",
    description: "Looks a code up",
    parameters: { ...object({ code: { $ref: "#/$defs/Zip" } }, ["code"]), $defs: { Zip: text } },
  },
];

interface Said {
  content?: string;
  reasoning?: string;
  calls?: [name: string, args: object][];
}

const coder = (name: string, ...parameters: [string, string][]): string =>
  `<tool_call>\n<function=${name}>\n${parameters
    .map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`)
    .join("")}</function>\n</tool_call>`;
const content = "Write <parameter=key> or\n<b></parameter> and then\nthe value.";
const calls = "Two:\n</function>\n</tool_call>\n<tool_call>\n<function=get_weather>\nof it.";
const rome = { city: "Rome" };

const cases: [template: string, written: string, said: Said][] = [
  [
    "ByteDance-Seed-OSS",
    "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Rome</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
    { calls: [["get_weather", { city: "Rome", days: 2 }]] },
  ],
  [
    "Qwen3.5-4B",
    `So.\n</think>\n\n${coder("write_file", ["path", "a.md"], ["content", content])}`,
    { reasoning: "So.", calls: [["write_file", { path: "a.md", content }]] },
  ],
  [
    "Qwen3.5-4B",
    "</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nRome</parameter>\n</function>\n</tool_call>",
    { calls: [["get_weather", rome]] },
  ],
  [
    "Qwen3.5-4B",
    `</think>\n\n${coder("write_file", ["path", "a.md"], ["content", calls])}`,
    { calls: [["write_file", { path: "a.md", content: calls }]] },
  ],
  [
    "Qwen3.5-4B",
    `I look it up.\n${coder("get_weather", ["city", "Rome"])}`,
    { reasoning: "I look it up.", calls: [["get_weather", rome]] },
  ],
  [
    "Qwen3.5-4B",
    `</think>\n\n${coder("zip", ["code", "12345"])}`,
    { calls: [["zip", { code: "12345" }]] },
  ],
  [
    "MiniMax-M2",
    '</think>\n\n<minimax:tool_call>\n<invoke name="write_file">\n<parameter name="path">a.xml</parameter>\n<parameter name="content"><a>\n<parameter name="x">1</a></parameter>\n</invoke>\n</minimax:tool_call>',
    { calls: [["write_file", { path: "a.xml", content: '<a>\n<parameter name="x">1</a>' }]] },
  ],
  ["GLM-4.6", "\n<think>I think.</think>\nHello.", { reasoning: "I think.", content: "Hello." }],
  [
    "poolside-Laguna-XS.2",
    "</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
    { calls: [["get_weather", rome]] },
  ],
  [
    "LFM2.5-8B-A1B",
    "<|tool_call_start|>[get_weather(city='Rome')]<|tool_call_end|>",
    { calls: [["get_weather", rome]] },
  ],
  [
    "meta-llama-Llama-3.1-8B-Instruct",
    'Here is one:\n```json\n{"name": "Alice", "age": 3}\n```\nIt is short.',
    { content: 'Here is one:\n```json\n{"name": "Alice", "age": 3}\n```\nIt is short.' },
  ],
  [
    "meta-llama-Llama-3.1-8B-Instruct",
    'I look.\n{"name": "get_weather", "parameters": {"city": "Rome"}}',
    { content: "I look.", calls: [["get_weather", rome]] },
  ],
  ["meetkai-functionary-medium-v3.2", "all\nHello.", { content: "Hello." }],
  [
    "meetkai-functionary-medium-v3.2",
    'all\nI look.>>>get_weather\n{"city": "Rome"}',
    { content: "I look.", calls: [["get_weather", rome]] },
  ],
  ["muse-glimmer", " to=user<|message|>Hello.", { content: "Hello." }],
  [
    "muse-glimmer",
    ' to=self<|message|>Hm.<|eom|><|start|>assistant to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Rome</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
    { reasoning: "Hm.", calls: [["get_weather", rome]] },
  ],
];

describe.skipIf(!hasMasks || !existsSync(templatesDirectory))("written", () => {
  const currentEngine = engineOfTests({ contextSize: 4096 });

  it.each(cases)("%s: %j", async (name, written, said) => {
    const engine = currentEngine();
    const template = readFileSync(join(templatesDirectory, `${name}.jinja`), "utf8");
    const tokens = await engine.tokenize(written);
    const { specialTokens, eosToken } = engine.model;
    const end = specialTokens.find((token) => token.text === eosToken)!.id;
    const events = new Chat(engine, { template }).generate({
      messages: [{ role: "user", content: "Hi" }],
      tools,
      toolMode: "external",
      // An end follows at once, if the mask has it.
      sampling: { ...scripted(tokens), samplesAfterScript: true, logitBias: [[end, 100]] },
      stop: [],
      owner: "test",
      maxTokens: tokens.length + 8,
    });
    const got = { content: "", reasoning: "", calls: [] as unknown[], reason: "" };
    for await (const event of events) {
      if (event.type === "content") got.content += event.text;
      else if (event.type === "reasoning") got.reasoning += event.text;
      else if (event.type === "call-end")
        got.calls.push([event.call.name, JSON.parse(event.call.arguments) as unknown]);
      else if (event.type === "finish") got.reason = event.reason;
    }
    const { calls = [] } = said;
    const reason = calls.length > 0 ? "tool_calls" : "stop";
    expect(got).toEqual({ content: "", reasoning: "", ...said, calls, reason });
  });
});
