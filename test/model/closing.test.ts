// An answer that is closed near its limit ends, wherever it is then: inside of texts of each form, and of patterns.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ToolCallFormat, guidedFormat } from "../../src/chat/formats/format.ts";
import { formats } from "../../src/chat/formats/formats.ts";
import { OutputParser } from "../../src/chat/parser/output-parser.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { jsonValue } from "../../src/guidance/json-values.ts";
import { documentStyle } from "../../src/guidance/lark.ts";
import { compileSchema } from "../../src/guidance/schema/compile.ts";
import { compileValidator } from "../../src/guidance/validator.ts";
import { makeConstraints } from "../support/constraints.ts";
import { collect, loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { greedy } from "../support/sampling.ts";

const seeds = [0, 1, 2, 3];

let engine: Engine;
let prompt: Int32Array;

beforeAll(async () => {
  engine = await loadTestEngine({ parallel: 4 });
  prompt = await engine.tokenize("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
});
afterAll(() => engine.close());

/** Drawn nearly evenly from what the masks allow, so that no text ends by itself. */
async function draw(text: string, maxTokens: number): Promise<string[]> {
  const grammar = await engine.compileGrammar({ kind: "lark", text });
  const drawn = seeds.map(async (seed) => {
    const sampling = { ...greedy, temperature: 2, seed };
    const generation = engine.generate({
      prompt,
      sampling,
      maxTokens,
      grammar,
      closeAtLimit: true,
    });
    const { text: written, finish } = await collect(generation);
    expect(finish.reason, written).toBe("end");
    return written;
  });
  return Promise.all(drawn);
}

const text = { type: "string" };
const parameters = {
  type: "object",
  properties: { query: text, note: { ...text, minLength: 30, maxLength: 400 }, code: text },
  required: ["query", "note"],
  additionalProperties: false,
};

async function callGrammar({ syntax }: ToolCallFormat): Promise<string> {
  const constraints = await makeConstraints({
    syntax,
    markers: null,
    controls: [],
    tools: [{ name: "pick", parameters }],
    guidance: { toolChoice: "required", parallel: false, closeAtLimit: true },
  });
  return (constraints.round(0, "no") as { text: string }).text;
}

const inParameters = formats.filter(
  ({ syntax }) =>
    syntax.argumentStyle.style === "parameters" && !syntax.argumentStyle.end.close.includes("$key"),
);

describe.skipIf(!hasMasks).each(inParameters)("$name", (format) => {
  it("closes a call inside of its texts", async () => {
    const validate = compileValidator(parameters);
    const offered = new Map([["pick", parameters]]);
    for (const written of await draw(await callGrammar(format), 200)) {
      const parser = new OutputParser({ format: guidedFormat(format), offered, reasoning: "no" });
      parser.push(written);
      parser.finish(true);
      const [call] = parser.calls;
      expect(validate(JSON.parse(call!.arguments)), written).toBeNull();
    }
  });
});

describe.skipIf(!hasMasks)("a document's text with a pattern", () => {
  it.each([
    "^(?!\\.)(?!.*\\.\\.)([a-z0-9_'+\\-\\.]*)[a-z0-9_+-]@([a-z0-9][a-z0-9\\-]*\\.)+[a-z]{2,}$",
    "^[\\w-]+\\.[\\w-]+\\.[\\w-]+$",
    "^[^a-z]*$",
    "^[\\s\\S]+@[\\s\\S]{0,64}$",
    "^https?://[^/]+/(?:[a-z]+/)*[a-z]+\\.html$",
    "^[^#]+#[^#]{20,}$",
  ])("%s is closed", async (pattern) => {
    const schema = {
      type: "object",
      properties: { value: { ...text, pattern }, more: text },
      required: ["value", "more"],
      additionalProperties: false,
    };
    const compiled = compileSchema(schema, { closed: false, objectOnly: false });
    const validate = compileValidator(schema);
    const lark = `start: ${jsonValue(compiled.schema!, documentStyle)}\n`;
    for (const written of await draw(lark, 150))
      expect(validate(JSON.parse(written)), written).toBeNull();
  });
});
