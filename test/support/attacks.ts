// Requests made to hurt: each is to be refused, or to work, soon, and no other request may notice.
import type { JsonSchema } from "../../src/chat/types.ts";

/** Fields of a chat completion. */
export type AttackFields = Readonly<Record<string, unknown>>;

const schema = (value: unknown): AttackFields => ({ guided_json_schema: value });
const string = (more: JsonSchema): AttackFields => schema({ type: "string", ...more });
const array = (more: JsonSchema): AttackFields =>
  schema({ type: "array", items: { type: "integer" }, ...more });
const regex = (pattern: string): AttackFields => ({ guided_regex: pattern });
const lark = (text: string): AttackFields => ({ guided_grammar: text });

export function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function named<T>(count: number, make: (index: number) => T): Record<string, T> {
  return Object.fromEntries(many(count, (index) => [`p${index}`, make(index)]));
}

function nested(levels: number): JsonSchema {
  return levels === 0
    ? { type: "string" }
    : { oneOf: [nested(levels - 1), { properties: { a: nested(levels - 1) } }] };
}

function deep(levels: number): JsonSchema {
  return levels === 0 ? {} : { properties: { a: deep(levels - 1) } };
}

/** Not by a function that calls itself: it is deeper than the stack. */
function bottomless(levels: number): JsonSchema {
  let schemaOfAll: JsonSchema = {};
  for (let level = 0; level < levels; level++) schemaOfAll = { not: schemaOfAll };
  return schemaOfAll;
}

function tools(count: number, parameters: (index: number) => JsonSchema): AttackFields {
  return {
    tool_choice: "required",
    tools: many(count, (index) => ({
      type: "function",
      function: { name: `tool_${index}`, parameters: parameters(index) },
    })),
  };
}

/** Schemas that take the compiler long. */
export const slowSchemas: readonly [name: string, JsonSchema][] = [
  ["nested oneOf", nested(12)],
  [
    "a product of choices",
    {
      allOf: many(40, (index) => ({
        anyOf: [{ required: [`a${index}`] }, { required: [`b${index}`] }],
      })),
    },
  ],
  [
    "oneOf of objects that overlap",
    { oneOf: many(150, (index) => ({ properties: { [`p${index}`]: { type: "string" } } })) },
  ],
  [
    "a union of 2,500 kinds",
    {
      oneOf: many(2500, (index) => ({
        type: "object",
        properties: { kind: { const: `k${index}` } },
        required: ["kind"],
      })),
    },
  ],
  [
    "patterns of names that may meet",
    {
      patternProperties: Object.fromEntries(
        many(120, (index) => [`^(a|b)*${index}(a|b){20}$`, { type: "string" }]),
      ),
    },
  ],
  [
    "unions of unions by reference",
    {
      $ref: "#/$defs/d0",
      $defs: Object.fromEntries(
        many(60, (index) => [
          `d${index}`,
          {
            oneOf: many(6, (step) => ({
              properties: { [`x${step}`]: { $ref: `#/$defs/d${(index + step + 1) % 60}` } },
            })),
          },
        ]),
      ),
    },
  ],
];

export const attacks: readonly [name: string, AttackFields][] = [
  ...slowSchemas.map(([name, value]): [string, AttackFields] => [name, schema(value)]),
  ["huge maxLength", string({ maxLength: 1e9 })],
  ["huge minLength", string({ minLength: 1e9 })],
  ["huge maxItems", array({ maxItems: 1e9 })],
  ["huge minItems", array({ minItems: 1e9 })],
  ["nested repetition", regex("^(a+)+$")],
  ["overlapping repetition", string({ pattern: "^(a|a|aa)*(a|aa)*b$" })],
  ["a long way back", string({ pattern: "(a|b)*a(a|b){60}$" })],
  ["counted repetition", regex("((a{100}){100}){100}")],
  ["1 MB of description", schema({ description: "x".repeat(1024 * 1024) })],
  [
    "1 MB of properties",
    schema({
      properties: named(9000, (index) => ({ description: "y".repeat(80), maximum: index })),
    }),
  ],
  ["30,000 properties", schema({ properties: named(30_000, () => ({ type: "string" })) })],
  ["15,000 properties", schema({ properties: named(9_900, () => ({ type: "string" })) })],
  ["10,000 constants", schema({ enum: many(10_000, (index) => `constant ${index}`) })],
  ["60 levels", schema(deep(60))],
  ["1,500 levels", schema(bottomless(1500))],
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
  [
    "500 tools",
    tools(500, (index) => ({
      type: "object",
      properties: { a: { type: "string" }, [`b${index}`]: { enum: ["x", "y"] } },
    })),
  ],
  ["2,000 tools", tools(2000, () => ({ type: "object", properties: { a: { type: "string" } } }))],
  ["60 tools with slow schemas", tools(60, (index) => ({ title: `${index}`, ...nested(9) }))],
  [
    "300 tools that the engine refuses",
    tools(300, (index) => ({
      type: "object",
      properties: { a: { type: "string", pattern: `^(x|y)*${index}(x|y){40}$` } },
    })),
  ],
  [
    "a tool of 500 KB",
    tools(1, () => ({ type: "object", description: "z".repeat(500_000), properties: {} })),
  ],
];
