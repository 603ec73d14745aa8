// Arguments in each format's own form: what the grammar lets through, the parser reads back to the same value.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ToolCallFormat, guidedFormat } from "../../src/chat/formats/format.ts";
import { formats } from "../../src/chat/formats/formats.ts";
import { writeCalls, writeJson } from "../../src/chat/formats/write-calls.ts";
import { OutputParser } from "../../src/chat/parser/output-parser.ts";
import type { JsonSchema } from "../../src/chat/types.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { makeConstraints } from "../support/constraints.ts";
import { loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";

type Arguments = Readonly<Record<string, unknown>>;

let engine: Engine;

beforeAll(async () => {
  engine = await loadTestEngine();
});
afterAll(async () => {
  await engine.close();
});

interface Reading {
  parameters: JsonSchema;
  /** The engine takes the tool's grammar. Default: it does. */
  isTaken?: boolean;
  /** Arguments are written as one JSON object where the closing marker repeats a parameter's name. */
  hasFreeNames?: boolean;
  /** What the model makes of a call. Default: itself. */
  written?: (call: string) => string;
}

/** @returns what the parser reads where the grammar lets all of a call through, else null */
async function readerOf(format: ToolCallFormat, reading: Reading) {
  const { parameters, isTaken = true, hasFreeNames = false, written = String } = reading;
  const { syntax } = format;
  const constraints = await makeConstraints({
    syntax,
    markers: null,
    controls: [],
    tools: [{ name: "pick", parameters }],
    guidance: { toolChoice: "auto", parallel: false, closeAtLimit: false },
  });
  for (const part of constraints.parts()) part.isEnforced = isTaken;
  const grammar = await engine.compileGrammar(constraints.round(0, "no")!);
  const { argumentStyle: style } = syntax;
  const isJson = hasFreeNames && style.style === "parameters" && style.end.close.includes("$key");
  return async (args: Arguments): Promise<unknown> => {
    const own = isJson ? writeJson(args, ", ", ": ") : args;
    const call = written(writeCalls(syntax, [["pick", own]]));
    if (!grammar.check(await engine.tokenize(call)).complete) return null;
    const offered = new Map([["pick", parameters]]);
    const parser = new OutputParser({ format: guidedFormat(format), offered, reasoning: "no" });
    parser.push(call);
    parser.finish(true);
    return parser.calls.map((call) => JSON.parse(call.arguments) as unknown);
  };
}

const text = { type: "string" };

describe.skipIf(!hasMasks).each(formats)("$name", (format) => {
  it("writes what several branches have in common as each of them does", async () => {
    const currencies = ["EUR", "USD", "GBP", "JPY", "CHF", "SEK", "NOK", "DKK", "PLN"];
    const parameters = {
      type: "object",
      properties: {
        id: text,
        name: text,
        currency: { ...text, enum: currencies },
        limit: { type: ["string", "number", "boolean"] },
      },
      anyOf: [{ required: ["id"] }, { required: ["name"] }],
    };
    const read = await readerOf(format, { parameters });
    for (const args of [
      { id: "7", currency: "EUR" },
      { name: "a", currency: "PLN", limit: "none" },
      { id: "b", limit: 7.5 },
      { id: "c", name: "d", limit: true },
    ])
      expect(await read(args)).toEqual([args]);
    for (const args of [{ currency: "EUR" }, { id: "7", currency: '"EUR"' }])
      expect(await read(args), JSON.stringify(args)).toBeNull();
  });

  it("writes tuples with what may follow them", async () => {
    const parameters = {
      type: "object",
      properties: {
        row: {
          type: "array",
          prefixItems: [{ type: "integer" }, { enum: ["up", "down"] }],
          items: { type: "boolean" },
          maxItems: 4,
        },
        long: {
          type: "array",
          prefixItems: [{ type: "integer" }],
          items: { type: "null" },
          minItems: 3,
        },
      },
      additionalProperties: false,
    };
    const read = await readerOf(format, { parameters });
    for (const args of [
      { row: [] },
      { row: [1] },
      { row: [1, "up", true, false], long: [2, null, null] },
      { long: [2, null, null, null] },
    ])
      expect(await read(args)).toEqual([args]);
    for (const args of [
      { row: ["up"] },
      { row: [1, true] },
      { row: [1, "up", true, false, true] },
      { long: [2, null] },
    ])
      expect(await read(args), JSON.stringify(args)).toBeNull();
  });

  it("writes lists without repeats", async () => {
    const days = {
      type: "array",
      items: { enum: ["mon", "tue", "wed", "thu", "fri", "sat", "sun", 8] },
      minItems: 1,
      uniqueItems: true,
    };
    const parameters = {
      type: "object",
      properties: { days, more: { type: "object", properties: { days }, required: ["days"] } },
      required: ["days"],
      additionalProperties: false,
    };
    const read = await readerOf(format, { parameters });
    for (const args of [
      { days: ["sun"] },
      { days: ["wed", 8, "mon"], more: { days: ["tue", "mon"] } },
    ])
      expect(await read(args)).toEqual([args]);
    for (const args of [
      { days: [] },
      { days: ["mon", "mon"] },
      { days: ["mon"], more: { days: ["tue", 8, "tue"] } },
    ])
      expect(await read(args), JSON.stringify(args)).toBeNull();
  });

  const integer = { type: "integer" };
  const listed = Object.fromEntries(Array.from({ length: 491 }, (_, index) => [`p${index}`, text]));
  const free = {
    city: "Rome",
    days: 2,
    tags: ["a", true],
    more: { q: null, "X-Deep": { x: "y" } },
  };

  it.each<[title: string, reading: Reading, right: Arguments[], wrong: Arguments[]]>([
    ["any", { parameters: { type: "object" } }, [{}, free], []],
    [
      "any, where the engine refuses the tool",
      { parameters: { type: "object", properties: { city: text } }, isTaken: false },
      [{}, free],
      [],
    ],
    [
      "any, where too many may be left out",
      { parameters: { type: "object", properties: listed } },
      [{}, { p7: "5", p490: "b" }],
      [],
    ],
    [
      "of one type",
      { parameters: { type: "object", additionalProperties: text } },
      [{}, { code: "5", other: "true", last: "null" }],
      [],
    ],
    [
      "behind those that are listed",
      {
        parameters: {
          type: "object",
          properties: { city: text, n: text },
          required: ["city"],
          additionalProperties: integer,
        },
      },
      [{ city: "Rome" }, { city: "5", days: 2, more: 3 }, { city: "a", n: "7", days: 2 }],
      [{ days: 2 }, { city: "Rome", days: "two" }, { city: "Rome", days: 2, n: 3 }],
    ],
    [
      "beside one that begins as they do, in an object of its own",
      {
        parameters: {
          type: "object",
          properties: {
            of: { type: "object", properties: { path: text }, additionalProperties: text },
          },
          additionalProperties: false,
        },
        hasFreeNames: false,
      },
      [{ of: { pattern: "x" } }, { of: { path: "a", pathname: "b" } }, { of: { p: "c" } }],
      [{ of: { path: 5 } }, { of: { pattern: 5 } }],
    ],
    [
      "that are no variables",
      {
        parameters: {
          type: "object",
          properties: { name: text },
          required: ["name"],
          patternProperties: { "^x-": text },
          additionalProperties: false,
        },
      },
      [{ name: "a" }, { name: "a", "x-b.c": "5" }],
      [{ name: "a", y: "5" }],
    ],
    [
      "that match a pattern",
      {
        parameters: {
          type: "object",
          properties: { x_0: integer },
          patternProperties: { "^x_": text },
          additionalProperties: integer,
        },
      },
      [
        { x_a: "5", n: 5 },
        { n: 5, x_b: "c" },
      ],
      [{ n: "c" }],
    ],
    [
      "that match a pattern, and no others",
      {
        parameters: {
          type: "object",
          patternProperties: { "^x_": integer },
          additionalProperties: false,
        },
      },
      [{}, { x_a: 5, x_b: 6 }],
      [{ y: 1 }, { x_a: "b" }, { x_a: 1, y: 1 }],
    ],
    [
      "in a record, as zod writes it",
      {
        parameters: {
          type: "object",
          properties: { of: { type: "object", propertyNames: text, additionalProperties: text } },
          propertyNames: text,
          additionalProperties: integer,
        },
      },
      [{ of: { a: "x", "b-c": "5" }, d: 1 }, { of: {} }],
      [{ of: { a: 5 } }, { d: "x" }],
    ],
    [
      "that all match a pattern",
      {
        parameters: {
          type: "object",
          propertyNames: { pattern: "^[a-z]{2}$" },
          additionalProperties: { type: "object", propertyNames: { minLength: 2 } },
        },
      },
      [{ ab: { de: true } }],
      [{ AB: {} }, { abc: {} }, { ab: { d: 1 } }],
    ],
    [
      "that are listed and match a pattern",
      {
        parameters: {
          type: "object",
          properties: { ab: text, "c-d": text },
          propertyNames: { pattern: "^[a-z]{2}$" },
        },
        hasFreeNames: false,
      },
      [{}, { ab: "5" }],
      [{ "c-d": "x" }, { ef: "x" }],
    ],
    [
      "none",
      { parameters: { type: "object", maxProperties: 0 }, hasFreeNames: false },
      [{}],
      [{ a: 1 }],
    ],
  ])("writes properties of free names: %s", async (_title, reading, right, wrong) => {
    const read = await readerOf(format, { hasFreeNames: true, ...reading });
    for (const args of right) expect(await read(args), JSON.stringify(args)).toEqual([args]);
    for (const args of wrong) expect(await read(args), JSON.stringify(args)).toBeNull();
  });

  it.each([
    ["needs characters that no form holds", '^ns:"=,<'],
    ["matches only what is listed", "^na(me)$"],
  ])(
    "leads to no dead end behind a listed property: a pattern that %s",
    async (_title, pattern) => {
      const { style } = format.syntax.argumentStyle;
      if (style === "json") return;
      const parameters = {
        type: "object",
        properties: { name: text },
        required: ["name"],
        patternProperties: { [pattern]: text },
        additionalProperties: false,
      };
      const constraints = await makeConstraints({
        syntax: format.syntax,
        markers: null,
        controls: [],
        tools: [{ name: "pick", parameters }],
        guidance: { toolChoice: "auto", parallel: false, closeAtLimit: false },
      });
      const grammar = await engine.compileGrammar(constraints.round(0, "no")!);
      const [alone, beside] = [{ name: "a" }, { name: "a", "?": "b" }].map((args) =>
        writeCalls(format.syntax, [["pick", args]]),
      );
      expect(grammar.check(await engine.tokenize(alone!)).complete).toBe(true);
      // Where the mask engine finds no way on, it says so.
      const before = await engine.tokenize(beside!.slice(0, beside!.indexOf("?")));
      expect(grammar.check(before).error).toBe("");
    },
  );

  it.each(["", "whose own opening was left out"])(
    "takes an opening of a parameter in a text for the text's in a call %s",
    async (leftOut) => {
      const { argumentStyle: style, callOpen } = format.syntax;
      if (style.style !== "parameters" || (leftOut !== "" && format.unmarked === null)) return;
      const parameters = { type: "object", properties: { note: text, q: text } };
      const written = (call: string): string =>
        leftOut === "" ? call : call.slice(callOpen.length).trimStart();
      const read = await readerOf(format, { parameters, written });
      const args = { note: `One\n${style.open}q${style.middle}2` };
      expect(await read(args)).toEqual([args]);
    },
  );
});
