// Calls that a model writes as bare objects: where the mask holds one the parser takes one, and all else is free.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formats } from "../../src/chat/formats/formats.ts";
import { OutputParser } from "../../src/chat/parser/output-parser.ts";
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

const right = '{"name": "get_weather", "arguments": {"city": "Rome"}}';
const wrong = right.replace('"Rome"', "5");
const spread = '{\n  "name": "get_weather",\n  "arguments": {"city": "Rome"}\n}';
const block = (text: string, of = "json"): string => `\`\`\`${of}\n${text}\n\`\`\``;

/** Each with a call that its schema refuses. */
const held = [
  wrong,
  // No other value than an object: a model that may not break the line behind its brace would write one.
  '{"name": "get_weather", "arguments": ["city"]}',
  '{"name": "get_weather", "arguments": "none"}\n',
  `\n ${wrong}`,
  `I look.\n\n${wrong}`,
  block(wrong),
  block(wrong, ""),
  block(wrong, "tool_call"),
  block(spread.replace('"city"', '"town"')),
  `I look it up.\nThe city is Rome.\n\n${block(wrong)}\n`,
  `[${wrong}]`,
  wrong.replace("5}}", '"Rome", "unit": "kelvin"}}'),
  `${right}\n<tool_call>\n${wrong}\n</tool_call>`,
];
/** Where there may be several. */
const heldBehind = [
  `${right}\n${wrong}`,
  `${block(right)}\n${block(wrong)}`,
  block(`[\n  ${right},\n  ${wrong}\n]`),
];
const free = [
  right,
  // A tool's definition, or a call: it is validated.
  wrong.replace("arguments", "parameters"),
  block('[{"name": "ping", "parameters": {"type": "object", "properties": {}}}]'),
  spread,
  `I look.\n\n${right}`,
  block(right),
  `${block(spread)}\nThat is the call.`,
  `[${right}, ${right}]`,
  `${right}\n${right}`,
  '{"name": "Anna"}',
  '{"name": "Anna", "arguments": [5]}',
  block('{"name": "Anna", "age": 5}'),
  '[{"name": "Anna"}, {"name": "get_weather"}]',
  '{"name": "get_weather", "parameters":null}',
  '{"name": "get_weather", "version": 1, "arguments": 5}',
  '{"name": "get_weather", "description": "Weather", "parameters_of": {}}',
  '{"name": "get_weather", "arguments"',
  '{"name": "',
  `The call ${wrong} is wrong.`,
  block(wrong, "python"),
  block(`call = 1\n${wrong}`, "python"),
  `{"a": 1}\n${block("[1]")}`,
  "{name: x} and {{ x }}\n",
];

describe.skipIf(!hasMasks).each(["qwen", "json-section"])("%s", (name) => {
  const format = formats.find((one) => one.name === name)!;
  const offered = new Map(tools.map((tool) => [tool.name, tool.parameters]));

  async function grammarOf(parallel: boolean, allowed?: string[]): Promise<Grammar> {
    const guidance = { toolChoice: "auto", parallel, closeAtLimit: false, allowed } as const;
    const options = { syntax: format.syntax, markers: null, controls: [], tools, guidance };
    return engine.compileGrammar((await makeConstraints(options)).round(0, "no")!);
  }

  /** @returns what the mask let through, and what it did not */
  async function walk(grammar: Grammar, text: string): Promise<[taken: string, refused: string]> {
    const tokens = await engine.tokenize(text);
    const { accepted } = grammar.check(tokens);
    const taken = engine.detokenize(tokens.subarray(0, accepted));
    return [taken, text.slice(taken.length)];
  }

  it.each([true, false])("holds arguments to the schema, several calls: %s", async (parallel) => {
    const grammar = await grammarOf(parallel);
    for (const text of name === "qwen" ? held : held.slice(0, -1)) {
      const [taken, refused] = await walk(grammar, text);
      expect(refused, text).not.toBe("");
      expect(taken, text).toMatch(/"arguments": ?(\{|$)("city": ("Rome", "unit": ")?)?"?$/u);
    }
    for (const text of heldBehind) {
      const [, refused] = await walk(grammar, text);
      expect(refused !== "", text).toBe(parallel);
    }
  });

  it.each([true, false])("lets all other text through, several calls: %s", async (parallel) => {
    const grammar = await grammarOf(parallel);
    for (const text of free) {
      expect((await walk(grammar, text))[1], text).toBe("");
      expect(grammar.check(await engine.tokenize(text)).complete, text).toBe(true);
    }
  });

  it("holds no call of a tool that may not be called", async () => {
    const grammar = await grammarOf(true, ["ping"]);
    expect((await walk(grammar, wrong))[1]).toBe("");
  });

  it("refuses only what the parser has begun to read as a call, and what is no object where one must be", async () => {
    const grammar = await grammarOf(true);
    const beforeObject = /"name"\s*:\s*"(get_weather|ping)"\s*,\s*"arguments"\s*:\s*$/u;
    const empty = '{\n "name": "ping",\n "arguments": {\n}\n}';
    const pieces = [right, wrong, spread, empty, '{"name": "Anna"}', '{"type":\n', '{"name": "']
      .concat([
        "get_weather",
        '", "arguments": ',
        "{",
        "[",
        "]",
        "}",
        ",",
        '"',
        "`",
        "```",
        "~~~\n",
      ])
      .concat(["```json\n", "```python\n", "```json ", "\n", "\r\n", " ", "\t", "I look.", "- "]);
    const texts = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(texts, async (parts) => {
        const text = parts.join("");
        const [taken, refused] = await walk(grammar, text);
        if (refused === "") return;
        const parser = new OutputParser({ format, offered, reasoning: "no" });
        const isOpen = parser.push(taken).some(({ type }) => type === "call-start");
        const begins = (): boolean =>
          parser.push(refused).some(({ type }) => type === "call-start");
        const isCall = (isOpen && parser.inCall) || begins() || beforeObject.test(taken);
        expect(isCall, JSON.stringify(text)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
