// What each format's models write is what its grammar lets through, on a real vocabulary.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ToolCallFormat } from "../../src/chat/formats/format.ts";
import { formats } from "../../src/chat/formats/formats.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Grammar } from "../../src/engine/types.ts";
import { OutputParser } from "../../src/chat/parser/output-parser.ts";
import type { ControlToken, DocumentFormat } from "../../src/guidance/types.ts";
import { makeConstraints } from "../support/constraints.ts";
import { loadTestEngine } from "../support/engine.ts";
import { text, tools } from "../support/format-tools.ts";
import { hasMasks } from "../support/masks.ts";
import { writeCalls } from "../../src/chat/formats/write-calls.ts";

interface Case {
  title: string;
  text: string;
  calls: unknown[];
}

/** Recorded outputs that only these two tools are called in. */
const recorded = ["one call", "two calls", "no arguments", "text and a call", "text only"];

/** Of formats whose text and reasoning have markers of their own. */
const moreRecorded: Record<string, readonly string[]> = {
  "gpt-oss": ["reasoning and a call", "reasoning and an answer", "text before a call"],
  lfm2: ["quotes and escapes in strings"],
  "qwen3-coder": ["two calls with nothing between"],
};

/** Models write these too; the grammar lets one form through, and the parser reads both. */
const otherForms: Record<string, readonly string[]> = {
  // A call ends the turn.
  "gpt-oss": ["two calls"],
};

let engine: Engine;

beforeAll(async () => {
  engine = await loadTestEngine();
});
afterAll(async () => {
  await engine.close();
});

describe.skipIf(!hasMasks).each(formats)("$name", (format) => {
  const { name, syntax } = format;
  let grammar: Grammar;

  async function check(
    written: string,
  ): Promise<{ rest: string; complete: boolean; error: string }> {
    const tokens = await engine.tokenize(written);
    const { accepted, complete, error } = grammar.check(tokens);
    const rest = engine.detokenize(tokens.subarray(accepted));
    return { rest, complete, error };
  }

  beforeAll(async () => {
    const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false } as const;
    const markers = format.reasoning;
    const options = { syntax, markers, controls: [], tools, guidance, budget: 4096 };
    const source = (await makeConstraints(options)).round(0, "split");
    expect(source).not.toBeNull();
    grammar = await engine.compileGrammar(source ?? { kind: "lark", text: "" });
  });

  const file = new URL(`../fixtures/outputs/${name}.json`, import.meta.url);
  const cases = (JSON.parse(readFileSync(file, "utf8")) as Case[]).filter(
    ({ title }) =>
      [...recorded, ...(moreRecorded[name] ?? [])].includes(title) &&
      otherForms[name]?.includes(title) !== true,
  );

  it.each(cases)("lets through: $title", async (known) => {
    expect(await check(known.text)).toEqual({ rest: "", complete: true, error: "" });
  });

  it("lets through what its syntax writes, after reasoning too", async () => {
    const written = writeCalls(syntax, [
      ["get_weather", { city: 'Zoë "x"', days: -2 }],
      ["ping", {}],
    ]);
    const { open, close } = format.reasoning;
    for (const thought of ["", `${open}So.${close}${syntax.afterReasoning ?? ""}`])
      expect(await check(thought + written)).toEqual({ rest: "", complete: true, error: "" });
  });

  it("lets a call end reasoning that was not closed, where the parser finds it", async () => {
    if (syntax.afterReasoning !== undefined) return;
    const call = writeCalls(syntax, [["get_weather", { city: "Rome" }]]);
    const { open, close } = format.reasoning;
    const offered = new Map(tools.map((tool) => [tool.name, tool.parameters]));
    for (const rest of [
      call,
      `${call}\n`,
      `${call} so. ${call}`,
      `${call} so.`,
      `${call} so.${close}Two.`,
    ]) {
      const parser = new OutputParser({ format, offered, reasoning: "split" });
      parser.push(`${open}So. ${rest}`);
      parser.finish(true);
      const isWhole = parser.calls.length > 0 || rest.includes(close);
      if (!rest.includes(close) || (syntax.textOpen ?? "") === "")
        expect((await check(`${open}So. ${rest}`)).complete, rest).toBe(isWhole);
    }
    // An id before the name tells that a call is meant.
    if (typeof syntax.body[0] !== "string" && syntax.body[0]?.part === "id") return;
    const spoken = `${open}With ${format.callOpen} or ${call.replace("get_weather", "x")}${close}`;
    expect(await check(spoken + call)).toEqual({ rest: "", complete: true, error: "" });
  });

  it("guides a call whose opening was left out, where the parser reads it", async () => {
    if (format.unmarked === null) return;
    const { open } = format.unmarked;
    const unmarked = (args: Record<string, unknown>): string =>
      writeCalls(syntax, [["get_weather", args]])
        .slice(syntax.callOpen.length)
        .trimStart();
    const call = unmarked({ city: "Rome" });
    for (const written of [
      call,
      `I look.\n${call}`,
      `Not ${open}x>, but\n${call}`,
      `An ${open}x>.`,
    ])
      expect(await check(written), written).toEqual({ rest: "", complete: true, error: "" });
    for (const written of [unmarked({ days: 2 }), `${unmarked({ city: "Rome", days: "two" })}`])
      expect((await check(written)).complete, written).toBe(false);
  });

  it("lets blanks stand before reasoning", async () => {
    const { open, close } = format.reasoning;
    const { afterReasoning = "", textOpen = "", textClose = "" } = syntax;
    if (format.usesChannels) return;
    const answer = `\n${open}So.${close}${afterReasoning}${textOpen}Two.${textClose}`;
    expect(await check(answer)).toEqual({ rest: "", complete: true, error: "" });
  });

  it("lets an answer through and no call, where no tool may be called", async () => {
    const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false } as const;
    const options = { syntax, markers: null, controls: [], tools, guidance, budget: 4096 };
    const last = await engine.compileGrammar((await makeConstraints(options)).round(1, "no", [])!);
    const isAnswer = async (written: string): Promise<boolean> =>
      last.check(await engine.tokenize(written)).complete;
    const { textOpen = "", textClose = "" } = syntax;
    for (const answer of ["Two.", '\n\n1 < 2 {"name": "box"} [x] `{`'])
      expect(await isAnswer(textOpen + answer + textClose), answer).toBe(true);
    const call = writeCalls(syntax, [["ping", {}]]);
    const { beforeCall } = syntax;
    const calls =
      beforeCall === undefined ? [call, `I look. ${call}`] : [`I look.${beforeCall}${call}`];
    for (const none of ["", " \n", ...calls])
      expect(await isAnswer(textOpen + none + textClose), none).toBe(false);
  });

  it("holds all that a schema says of a text", async () => {
    const properties = {
      code: { ...text, pattern: "^[a-c]+$", maxLength: 3 },
      both: { ...text, minLength: 3, allOf: [{ pattern: "^a" }, { pattern: "b$" }] },
      at: { ...text, format: "ipv6", pattern: "^2" },
    };
    const constraints = await makeConstraints({
      syntax,
      markers: null,
      controls: [],
      tools: [{ name: "pick", strict: true, parameters: { type: "object", properties } }],
      guidance: { toolChoice: "auto", parallel: true, closeAtLimit: false },
    });
    const picking = await engine.compileGrammar(constraints.round(0, "no")!);
    for (const [key, right, wrong] of [
      ["code", ["a", "abc"], ["", "abca", "abd"]],
      ["both", ["a b", "acb"], ["ab", "abc", "bcb"]],
      ["at", ["2001:db8::1"], ["::1", "2", "2001:db8::1:"]],
    ] as const) {
      const isWhole = async (value: string): Promise<boolean> => {
        const written = writeCalls(syntax, [["pick", { [key]: value }]]);
        return picking.check(await engine.tokenize(written)).complete;
      };
      for (const value of right) expect(await isWhole(value), value).toBe(true);
      for (const value of wrong) expect(await isWhole(value), value).toBe(false);
      const quoted = writeCalls(syntax, [["pick", `${key}='${wrong[1]}'`]]);
      expect(picking.check(await engine.tokenize(quoted)).complete).toBe(false);
    }
  });

  it("lets a client's GBNF through where the answer stands", async () => {
    const { open, close } = format.reasoning;
    const { textOpen = "", textClose = "", afterReasoning = "" } = syntax;
    const isWhole = async (reasoning: "no" | "split" | "open", written: string) => {
      const grammar = await compileGbnf(format, reasoning);
      return grammar.check(await engine.tokenize(written)).complete;
    };
    const answer = `${textOpen}yes${textClose}`;
    // A beginning of the marker is text, be it twice or before the marker itself.
    const begun = close.slice(0, -1);
    for (const thought of ["", "Is it </p>, [/b], <|x|> or `yes`?", begun + begun])
      expect(await isWhole("open", thought + close + afterReasoning + answer), thought).toBe(true);
    expect(await isWhole("split", `${open}So.${close}${afterReasoning}${answer}`)).toBe(true);
    expect(await isWhole("split", answer)).toBe(true);
    expect(await isWhole("no", answer)).toBe(true);
    expect(await isWhole("open", `So.${close}No.${close}${afterReasoning}${answer}`)).toBe(false);
    if (textOpen + afterReasoning === "") return;
    expect(await isWhole("open", `So.${close}yes`)).toBe(false);
    expect(await isWhole("no", "yes")).toBe(textOpen === "");
  });

  it("stops a call of no tool, and a wrong type", async () => {
    for (const call of [
      ["no_such_tool", {}],
      ["get_weather", { city: "Rome", days: "two" }],
      ["get_weather", { days: 2 }],
    ] as const) {
      const { complete } = await check(writeCalls(syntax, [call]));
      expect(complete, JSON.stringify(call)).toBe(false);
    }
  });
});

const gbnf = {
  kind: "grammar",
  text: 'root ::= "yes" | "no"',
  field: "grammar",
} as const satisfies DocumentFormat;

async function compileGbnf(
  { syntax, reasoning: markers }: Pick<ToolCallFormat, "syntax" | "reasoning">,
  reasoning: "no" | "split" | "open",
  controls: readonly ControlToken[] = [],
): Promise<Grammar> {
  const constraints = await makeConstraints({
    syntax,
    markers,
    controls,
    tools: [],
    guidance: { toolChoice: "auto", parallel: true, closeAtLimit: false, document: gbnf },
  });
  return engine.compileGrammar(constraints.round(0, reasoning)!);
}

describe("a client's GBNF behind a marker that is a token", () => {
  it("begins once the token was written", async () => {
    const token = "<|im_start|>";
    const mistral = formats.find(({ name }) => name === "mistral")!;
    const { id } = engine.model.specialTokens.find((special) => special.text === token)!;
    const grammar = await compileGbnf(mistral, "open", [{ id, text: "[/THINK]" }]);
    const isWhole = async (text: string): Promise<boolean> =>
      grammar.check(await engine.tokenize(text)).complete;
    expect(await isWhole(`Hm. [/THIN${token}yes`)).toBe(true);
    expect(await isWhole(`Hm.${token}maybe`)).toBe(false);
    expect(await isWhole("yes")).toBe(false);
  });
});

describe.skipIf(!hasMasks)("harmony, a marker being a token", () => {
  // The vocabulary's only control token that ends nothing takes the part.
  const token = "<|im_start|>";
  const gptOss = formats.find(({ name }) => name === "gpt-oss")!;

  async function walk(document: DocumentFormat | undefined, text: string): Promise<boolean> {
    const { id } = engine.model.specialTokens.find((special) => special.text === token)!;
    const constraints = await makeConstraints({
      syntax: gptOss.syntax,
      markers: gptOss.reasoning,
      controls: [{ id, text: "<|channel|>" }],
      tools,
      guidance: { toolChoice: "auto", parallel: true, closeAtLimit: false, document },
    });
    const grammar = await engine.compileGrammar(constraints.round(0, "split")!);
    return grammar.check(await engine.tokenize(text.replaceAll("<|channel|>", token))).complete;
  }

  const thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
  const preamble = "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant";
  const answer = "<|channel|>final<|message|>";
  const call =
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Rome"}';

  it.each([
    [`${answer}It is sunny.`, true],
    [`${thought}${answer}It is sunny.`, true],
    [call, true],
    [`${thought}${preamble}${thought}${call}`, true],
    [`${preamble}${answer}Sunny.`, true],
    // Text has its own channel, reasoning must end, and a call needs a tool.
    ["It is sunny.", false],
    ["<|channel|>analysis<|message|>Hm.", false],
    [`${answer}Sunny.${call}`, false],
    [call.replace("get_weather", "get_news"), false],
  ])("%s: %s", async (text, isAllowed) => {
    expect(await walk(undefined, text)).toBe(isAllowed);
  });

  it("a document stands in the answer's channel", async () => {
    const document = { kind: "choice", choices: ["yes", "no"] } as const;
    expect(await walk(document, `${thought}${answer}yes`)).toBe(true);
    expect(await walk(document, call)).toBe(true);
    expect(await walk(document, `${answer}maybe`)).toBe(false);
    expect(await walk(document, "yes")).toBe(false);
  });
});
