// Arguments in each format's own form: what the grammar lets through, the parser reads back to the same value.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ToolCallFormat, guidedFormat } from "../../src/chat/formats/format.ts";
import { formats } from "../../src/chat/formats/formats.ts";
import { writeCalls } from "../../src/chat/formats/write-calls.ts";
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

/** @returns what the parser reads where the grammar lets all of a call through, else null */
async function readerOf(format: ToolCallFormat, parameters: JsonSchema) {
  const constraints = await makeConstraints({
    syntax: format.syntax,
    markers: null,
    controls: [],
    tools: [{ name: "pick", parameters }],
    guidance: { toolChoice: "required", parallel: false, closeAtLimit: false },
  });
  const grammar = await engine.compileGrammar(constraints.round(0, "no")!);
  return async (args: Arguments): Promise<unknown> => {
    const written = writeCalls(format.syntax, [["pick", args]]);
    if (!grammar.check(await engine.tokenize(written)).complete) return null;
    const offered = new Map([["pick", parameters]]);
    const parser = new OutputParser({ format: guidedFormat(format), offered, reasoning: "no" });
    parser.push(written);
    parser.finish(true);
    return parser.calls.map((call) => JSON.parse(call.arguments) as unknown);
  };
}

const text = { type: "string" };

describe.skipIf(!hasMasks).each(formats)("$name", (format) => {
  it("writes what several branches have in common as each of them does", async () => {
    const currencies = ["EUR", "USD", "GBP", "JPY", "CHF", "SEK", "NOK", "DKK", "PLN"];
    const read = await readerOf(format, {
      type: "object",
      properties: {
        id: text,
        name: text,
        currency: { ...text, enum: currencies },
        limit: { type: ["string", "number", "boolean"] },
      },
      anyOf: [{ required: ["id"] }, { required: ["name"] }],
    });
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
});
