// Where a value, or a call without markers, begins and ends: the grammar and the parser say the same.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OutputParser } from "../../src/chat/parser/output-parser.ts";
import { formats } from "../../src/chat/formats/formats.ts";
import { writeCalls } from "../../src/chat/formats/write-calls.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Grammar } from "../../src/engine/types.ts";
import { makeConstraints } from "../support/constraints.ts";
import { loadTestEngine } from "../support/engine.ts";
import { tools } from "../support/format-tools.ts";
import { hasMasks } from "../support/masks.ts";

let engine: Engine;

beforeAll(async () => {
  engine = await loadTestEngine();
});
afterAll(async () => {
  await engine.close();
});

/** What is written behind the first key's text, and what it says. */
const values: Record<string, readonly (readonly [string, object])[]> = {
  "qwen3-coder": [
    ["Rome\n</parameter>\n</function>\n</tool_call>", { city: "Rome" }],
    ["Rome</parameter>\n</function>\n</tool_call>", { city: "Rome" }],
    ["Rome</parameter></function>\n</tool_call>", { city: "Rome" }],
    [
      "Rome</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
      { city: "Rome", days: 2 },
    ],
    ["</parameter>\n</function>\n</tool_call>", { city: "" }],
    ["\n</parameter>\n</function>\n</tool_call>", { city: "" }],
    [
      "a</parameter> c <parameter=x> <parameter=days>\n</parameter>\n</function>\n</tool_call>",
      { city: "a</parameter> c <parameter=x> <parameter=days>" },
    ],
  ],
  "seed-oss": [
    ["Rome</parameter>\n</function>\n</seed:tool_call>", { city: "Rome" }],
    [
      "Rome</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
      { city: "Rome", days: 2 },
    ],
    ["\nRome\n</parameter>\n</function>\n</seed:tool_call>", { city: "\nRome\n" }],
  ],
  minicpm5: [
    ["<![CDATA[<a></param>]]></param></function>", { city: "<a></param>" }],
    ["a <![CDATA[</param></function>", { city: "a <![CDATA[" }],
  ],
  minimax: [
    [
      'a <parameter name="x">1</parameter>\n</invoke>\n</minimax:tool_call>',
      { city: 'a <parameter name="x">1' },
    ],
    [
      'Rome</parameter>\n<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
      { city: "Rome", days: 2 },
    ],
  ],
};

describe.skipIf(!hasMasks).each(Object.entries(values))(
  "%s: a value ends for the grammar where it ends for the parser",
  (name, written) => {
    const format = formats.find((one) => one.name === name)!;
    const { syntax } = format;
    const [begin] = writeCalls(syntax, [["get_weather", { city: "@" }]]).split("@");
    let grammar: Grammar;

    beforeAll(async () => {
      const guidance = { toolChoice: "required", parallel: true, closeAtLimit: false } as const;
      const options = { syntax, markers: null, controls: [], tools, guidance };
      grammar = await engine.compileGrammar((await makeConstraints(options)).round(0, "no")!);
    });

    it.each(written)("%j", async (value, said) => {
      const text = `${begin}${value}`;
      const offered = new Map(tools.map((tool) => [tool.name, tool.parameters]));
      const parser = new OutputParser({ format, offered, reasoning: "no" });
      for (let end = 1; end <= text.length; end++) {
        parser.push(text.charAt(end - 1));
        const tokens = await engine.tokenize(text.slice(0, end));
        const { accepted, complete } = grammar.check(tokens);
        expect(accepted).toBe(tokens.length);
        expect(complete).toBe(end === text.length);
      }
      parser.finish(true);
      expect(parser.calls.map((call) => JSON.parse(call.arguments) as unknown)).toEqual([said]);
    });
  },
);

describe.skipIf(!hasMasks).each(["llama3", "llama4", "json"])("%s: bare calls", (name) => {
  const format = formats.find((one) => one.name === name)!;
  const call = writeCalls(format.syntax, [["get_weather", { city: "Rome" }]]);
  let grammar: Grammar;

  beforeAll(async () => {
    const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false } as const;
    const { syntax } = format;
    const options = { syntax, markers: null, controls: [], tools, guidance };
    grammar = await engine.compileGrammar((await makeConstraints(options)).round(0, "no")!);
  });

  it.each([
    'Here is one:\n```json\n{"name": "Alice", "age": 3}\n```\nThat is it.',
    'Here is one: {"name": "Alice"}',
    `Within a line: ${call} is text.`,
    `\`\`\`python\n${call}\n\`\`\`\nThat was code.`,
    'One\n{"name": "Alice"}\n{"name": "get_weather_of',
  ])("text: %j", async (text) => {
    const tokens = await engine.tokenize(text);
    const { accepted, complete } = grammar.check(tokens);
    expect([accepted, complete]).toEqual([tokens.length, true]);
  });

  it.each([call, `\n${call}`, `I look.\n${call}`, `{"name": "A"}\n${call}`.replace("{", "A: {")])(
    "a call: %j",
    async (text) => {
      const tokens = await engine.tokenize(text);
      expect(grammar.check(tokens).complete).toBe(true);
      // Its arguments are the tool's.
      const wrong = await engine.tokenize(text.replace('"city"', '"town"'));
      expect(grammar.check(wrong).complete).toBe(false);
    },
  );

  it("a block of code ends before a call", async () => {
    const text = `\`\`\`js\nf({"name": "a"})\n\`\`\`\n${call}`;
    expect(grammar.check(await engine.tokenize(text)).complete).toBe(true);
    const wrong = await engine.tokenize(text.replace('"city"', '"town"'));
    expect(grammar.check(wrong).complete).toBe(false);
  });
});
