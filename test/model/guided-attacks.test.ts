// Schemas, expressions and grammars made to hurt: each is refused, or works, and the engine lives on.
import { afterAll, beforeAll, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import type { JsonSchema, ToolDefinition } from "../../src/chat/types.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { FermataError } from "../../src/errors.ts";
import type { DocumentFormat, Guidance } from "../../src/guidance/types.ts";
import { loadTestEngine } from "../support/engine.ts";
import { greedy } from "../support/sampling.ts";

let engine: Engine;
let chat: Chat;

beforeAll(async () => {
  engine = await loadTestEngine();
  chat = new Chat(engine);
});
afterAll(() => engine.close());

const free: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };

/** @returns the finish reason, or the code of a 400 */
async function answer(guidance: Guidance, tools: ToolDefinition[] = []): Promise<string> {
  try {
    const generation = chat.generate({
      messages: [{ role: "user", content: "Hi" }],
      tools,
      toolMode: tools.length === 0 ? "none" : "external",
      sampling: greedy,
      stop: [],
      maxTokens: 12,
      owner: "attack",
      guidance,
    });
    for await (const event of generation) if (event.type === "finish") return event.reason;
  } catch (error) {
    if (error instanceof FermataError && error.status === 400) return error.code;
    throw error;
  }
  throw new Error("no finish");
}

function schema(value: JsonSchema): DocumentFormat {
  return { kind: "json_schema", schema: value, strict: true, field: "guided_json_schema" };
}

const string = (more: JsonSchema): DocumentFormat => schema({ type: "string", ...more });
const array = (more: JsonSchema): DocumentFormat =>
  schema({ type: "array", items: { type: "integer" }, ...more });
const regex = (pattern: string): DocumentFormat => ({
  kind: "regex",
  pattern,
  field: "guided_regex",
});
const lark = (text: string): DocumentFormat => ({ kind: "grammar", text, field: "guided_grammar" });
const nested = (levels: number): JsonSchema =>
  levels === 0
    ? { type: "string" }
    : { oneOf: [nested(levels - 1), { properties: { a: nested(levels - 1) } }] };
const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

test.each<[string, DocumentFormat]>([
  ["nested oneOf", schema(nested(12))],
  ["huge maxLength", string({ maxLength: 1e9 })],
  ["huge minLength", string({ minLength: 1e9 })],
  ["huge maxItems", array({ maxItems: 1e9 })],
  ["huge minItems", array({ minItems: 1e9 })],
  ["nested repetition", regex("^(a+)+$")],
  ["overlapping repetition", string({ pattern: "^(a|a|aa)*(a|aa)*b$" })],
  ["a long way back", string({ pattern: "(a|b)*a(a|b){60}$" })],
  ["counted repetition", regex("((a{100}){100}){100}")],
  ["1 MB of schema", schema({ description: "x".repeat(1024 * 1024) })],
  [
    "30,000 properties",
    schema({ properties: Object.fromEntries(many(30_000, (i) => [`p${i}`, { type: "string" }])) }),
  ],
  ["10,000 constants", schema({ enum: many(10_000, (i) => `constant ${i}`) })],
  ["a reference to itself", schema({ $ref: "#" })],
  [
    "a value that cannot end",
    schema({ required: ["a"], type: "object", properties: { a: { $ref: "#" } } }),
  ],
  [
    "mutual recursion",
    schema({
      $ref: "#/$defs/a",
      $defs: {
        a: { anyOf: [{ type: "null" }, { type: "array", items: { $ref: "#/$defs/b" } }] },
        b: {
          oneOf: [{ $ref: "#/$defs/a" }, { type: "object", additionalProperties: { $ref: "#" } }],
        },
      },
    }),
  ],
  ["a grammar without an end", lark("start: start")],
  ["a grammar that is deeply ambiguous", lark('start: a a a a a a\na: "x" | a a | ""')],
  ["a grammar that is no grammar", lark("}{")],
  ["a grammar with a counted repetition", lark("start: /((a{1,500}){1,500}){1,500}/")],
])("%s", async (_name, document) => {
  const outcome = await answer({ ...free, document });
  expect(outcome).toMatch(
    /^(stop|length|schema_too_large|invalid_schema|unsupported_schema|invalid_value|invalid_grammar|grammar_failed)$/u,
  );
  // What it did to the engine is nothing.
  expect(await answer({ ...free, document: { kind: "choice", choices: ["yes", "no"] } })).toBe(
    "stop",
  );
});

test.each([500, 2000])("%d tools", async (count) => {
  const tools = many(count, (index) => ({
    name: `tool_${index}`,
    parameters: {
      type: "object",
      properties: { a: { type: "string" }, [`b${index}`]: { enum: ["x", "y"] } },
    },
  }));
  // So many do not fit this context, whatever the grammar.
  expect(await answer({ ...free, toolChoice: "required" }, tools)).toMatch(
    /^(invalid_value|context_length_exceeded)$/u,
  );
});

test("what a strict tool cannot have is refused by its name", async () => {
  const tool = (strict: boolean): ToolDefinition => ({
    name: "search",
    strict,
    parameters: { type: "object", properties: { q: { type: "string", not: { pattern: "x" } } } },
  });
  expect(await answer(free, [tool(true)])).toBe("unsupported_schema");
  expect(await answer(free, [tool(false)])).not.toBe("unsupported_schema");
});
