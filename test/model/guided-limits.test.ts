// What the mask engine takes of many tools and of large schemas, and what is done with what it refuses.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import { formatNamed, qwen } from "../../src/chat/formats/formats.ts";
import type { ChatRequest, ToolDefinition } from "../../src/chat/types.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { JsonObject } from "../../src/guidance/schema/types.ts";
import type { DocumentFormat } from "../../src/guidance/types.ts";
import { many } from "../support/attacks.ts";
import { makeConstraints } from "../support/constraints.ts";
import { collect, loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { greedy } from "../support/sampling.ts";

let engine: Engine;
let chat: Chat;

beforeAll(async () => {
  engine = await loadTestEngine({ contextSize: 4096 });
  chat = new Chat(engine);
});
afterAll(() => engine.close());

type Properties = { [name: string]: unknown };

function tool(name: string, properties: Properties, strict = false): ToolDefinition {
  const required = Object.keys(properties).slice(0, 1);
  return {
    name,
    strict,
    parameters: { type: "object", properties, required, additionalProperties: false },
  };
}

interface Turn {
  tools?: ToolDefinition[];
  document?: DocumentFormat;
  /** What the model tries to write; the masks replace what they do not allow. */
  written: string;
}

/** The first call's arguments, or the document. */
async function answer({ tools = [], document, written }: Turn): Promise<unknown> {
  const request: ChatRequest = {
    messages: [{ role: "user", content: "Go." }],
    tools,
    toolMode: "external",
    sampling: {
      ...greedy,
      script: await engine.tokenize(written),
      samplesAfterScript: true,
    },
    stop: [],
    maxTokens: 200,
    owner: "limits",
    guidance: { toolChoice: "auto", parallel: false, closeAtLimit: true, document },
  };
  let text = "";
  for await (const event of chat.generate(request)) {
    if (event.type === "content") text += event.text;
    if (event.type !== "finish") continue;
    const [call] = event.calls;
    return call === undefined ? JSON.parse(text) : JSON.parse(call.arguments);
  }
  return undefined;
}

function call(name: string, begun: string): string {
  return `<tool_call>\n{"name": "${name}", "arguments": ${begun}`;
}

/** The mask engine refuses it: whether there is such a string takes it too long to tell. */
const hopeless = {
  type: "string",
  allOf: ["^(?:[a-z][0-9])+$", "^(?:c1d3g3.{4,8}){6}", "(?:t|8){10}$"].map((pattern) => ({
    pattern,
  })),
};
const kinds = [{ type: "string" }, { type: "integer" }, { type: "boolean" }, { enum: ["a", "b"] }];

/** Walks texts through the first round's grammar: which of them it takes whole. */
async function taken(
  { tools = [], document }: Pick<Turn, "tools" | "document">,
  texts: readonly string[],
): Promise<boolean[]> {
  const constraints = await makeConstraints({
    syntax: qwen.syntax,
    markers: null,
    controls: [],
    tools,
    guidance: { toolChoice: "auto", parallel: false, closeAtLimit: false, document },
  });
  const grammar = await engine.compileGrammar(constraints.round(0, "no")!);
  const tokens = await Promise.all(texts.map((text) => engine.tokenize(text)));
  return tokens.map((each) => grammar.check(each).complete);
}

const tagged = (index: number): unknown => ({
  type: "object",
  properties: { kind: { const: `k${index}` }, v: kinds[index % 4] },
  required: ["kind", "v"],
});
const links = many(500, (index) => [
  `d${index}`,
  { type: "object", properties: { n: { $ref: `#/$defs/d${index + 1}` } } },
]);
const large: [string, JsonObject, string, string][] = [
  ["oneOf of 500", { oneOf: many(500, tagged) }, '{"kind":"k5","v":7}', '{"kind":"k5","v":"7"}'],
  ["anyOf of 500", { anyOf: many(500, tagged) }, '{"kind":"k5","v":7}', '{"kind":"k5","v":"7"}'],
  ["enum of 50,000", { enum: many(50_000, (at) => `v${at}.`) }, '"v49999."', '"v50000."'],
  [
    "500 references, each a level down",
    { $ref: "#/$defs/d0", $defs: { ...Object.fromEntries(links), d500: false } },
    '{"n":{"n":{"n":{}}}}',
    '{"n":{"n":{"n":1}}}',
  ],
];

const optional = (count: number): JsonObject => ({
  type: "object",
  properties: Object.fromEntries(many(count, (index) => [`p${index}`, { type: "integer" }])),
});
const counted = (count: number): string => `^.{0,${count}}x.{0,${count}}$`;
const together = (patterns: string[]): JsonObject => ({
  type: "string",
  allOf: patterns.map((pattern) => ({ pattern })),
});
const endings: [string, JsonObject, unknown][] = [
  ["480 optional properties", optional(480), { p0: 1, p479: 2 }],
  [
    "two counts",
    { type: "string", pattern: counted(450) },
    `${"a b c ".repeat(70)}x${"b c d ".repeat(70)}`,
  ],
  ["four patterns", together(["a", "b.*c", "[0-9]", "^.{3,}$"]), "c b a c 0 ".repeat(60)],
];
const dying: [string, JsonObject, string][] = [
  ["2,000 optional properties", optional(2000), "properties"],
  [
    "600 alternatives with an optional property first",
    {
      anyOf: many(600, (index) => ({
        type: "object",
        properties: { note: { type: "string" }, kind: { const: index } },
        required: ["kind"],
      })),
    },
    "properties",
  ],
  ["long counts", { type: "string", pattern: counted(2000) }, "pattern"],
  ["eight patterns", together([..."abcdefgh"].map((letter) => `${letter}.*z`)), "pattern"],
  ["two patterns with counts", together([counted(100), counted(101)]), "pattern"],
];

describe.skipIf(!hasMasks)("masks", () => {
  test.each([
    [60, 100],
    [512, 10],
  ])("hold %d tools of %d properties", async (tools, properties) => {
    const offered = many(tools, (index) =>
      tool(
        `tool_${index}`,
        Object.fromEntries(many(properties, (at) => [`p${index}_${at}`, kinds[(at + 1) % 4]])),
      ),
    );
    const texts = ["7", '"7"'].map(
      (value) => `${call("tool_7", `{"p7_0": ${value}}`)}}\n</tool_call>`,
    );
    expect(await taken({ tools: offered }, texts)).toEqual([true, false]);
  });

  test.each(large)("hold %s", async (_name, schema, right, wrong) => {
    const document = { kind: "json_schema", schema, strict: true, field: "x" } as const;
    expect(await taken({ document }, [right, wrong])).toEqual([true, false]);
  });

  test.each(endings)("%s: held to the end of a long text", async (_name, schema, text) => {
    const document = { kind: "json_schema", schema, strict: true, field: "x" } as const;
    expect(await taken({ document }, [JSON.stringify(text)])).toEqual([true]);
  });

  test.each(dying)("%s: refused before anything is written", async (_name, schema, keyword) => {
    const document = { kind: "json_schema", schema, strict: true, field: "x" } as const;
    await expect(taken({ document }, [])).rejects.toMatchObject({
      code: "unsupported_schema",
      message: expect.stringContaining(`"${keyword}"`) as string,
    });
  });

  test("a tool that is refused leaves the others theirs, wherever it stands", async () => {
    for (const at of [0, 3, 8]) {
      const tools = many(9, (index) =>
        index === at ? tool(`t${index}`, { x: hopeless }) : tool(`t${index}`, { x: kinds[1] }),
      );
      const other = (at + 1) % 9;
      const held = await answer({ tools, written: call(`t${other}`, '{"x": "') });
      expect(held).toMatchObject({ x: expect.any(Number) as number });
    }
  });

  test("strict: the tool that is refused is named", async () => {
    const tools = many(9, (index) =>
      tool(`t${index}`, { x: index === 5 ? hopeless : kinds[1] }, index > 3),
    );
    await expect(answer({ tools, written: "" })).rejects.toMatchObject({
      status: 400,
      param: "tools",
      message: expect.stringContaining('"t5"') as string,
    });
  });
});

test.skipIf(!hasMasks)("an end that is not found fails no answer", async () => {
  const constraints = await makeConstraints({
    syntax: formatNamed("qwen3-coder")!.syntax,
    markers: null,
    controls: [],
    tools: [tool("pick", { query: { type: "string", minLength: 800 }, n: { type: "integer" } })],
    guidance: { toolChoice: "required", parallel: false, closeAtLimit: true },
  });
  const query = "what is the best way to search the web for things that people like? ".repeat(6);
  const written = `<tool_call>\n<function=pick>\n<parameter=query>\n${query}`;
  const { finish } = await collect(
    engine.generate({
      prompt: await engine.tokenize("x"),
      sampling: { ...greedy, script: await engine.tokenize(written) },
      maxTokens: 40,
      grammar: await engine.compileGrammar(constraints.round(0, "no")!),
      closeAtLimit: true,
    }),
  );
  expect(finish.reason).toBe("length");
});
