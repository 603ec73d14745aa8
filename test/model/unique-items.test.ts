// Arrays whose items must all differ: what is drawn under their masks, and what the masks let through.
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { Grammar } from "../../src/engine/types.ts";
import { compileValidator } from "../../src/guidance/validator.ts";
import { collect, loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { greedy } from "../support/sampling.ts";
import { acceptor, exactGrammar } from "../support/schema-suite.ts";

let engine: Engine;
let prompt: Int32Array;

beforeAll(async () => {
  engine = await loadTestEngine({ contextSize: 1024, parallel: 2 });
  prompt = await engine.tokenize("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
});
afterAll(() => engine.close());

const set = (items: object, rest: object = {}): object => ({
  type: "array",
  items,
  uniqueItems: true,
  ...rest,
});
const text = { type: "string" };
const point = {
  type: "object",
  properties: { x: { type: "integer" }, y: { type: "integer" } },
  required: ["x"],
  additionalProperties: false,
};

interface Case {
  schema: object;
  valid: readonly string[];
  invalid: readonly string[];
}

describe.skipIf(!hasMasks)("masks let through what differs, and nothing else", () => {
  const cases: Record<string, Case> = {
    texts: {
      schema: set(text),
      valid: ["[]", '["a"]', '["a","b","ab","A",""]', '["7919283746501","a b", "a  b"]'],
      invalid: [
        '["a","a"]',
        '["",""]',
        '["a b","c","a b"]',
        '["\\n","\\u000a"]',
        "[7919283746501]",
      ],
    },
    "texts with a pattern": {
      schema: set({ type: "string", pattern: "^(?:a|ab|b)$" }),
      valid: ['["ab","a","b"]', '["b"]'],
      invalid: ['["ab","a","ab"]', '["b","a","ab","b"]'],
    },
    "dates, five at most": {
      schema: set({ type: "string", format: "date" }, { maxItems: 5 }),
      valid: ['["2024-01-01","2024-01-02"]'],
      invalid: ['["2024-01-01","2024-01-02","2024-01-01"]'],
    },
    numbers: {
      schema: set({ type: "number" }),
      valid: ["[1,10,1.5,-1,0.1]", "[0, 1e2, 1e3]"],
      invalid: ["[1,1]", "[1,1.0]", "[100,1e2]", "[0,-0]", "[0.1,0.10]"],
    },
    integers: {
      schema: set({ type: "integer", minimum: 1, maximum: 12 }, { minItems: 2 }),
      valid: ["[1,11,12]", "[12,11,10,9,8,7,6,5,4,3,2,1]"],
      invalid: ["[1]", "[1,1]", "[12,11,10,9,8,7,6,5,4,3,2,1,1]"],
    },
    "texts and numbers": {
      schema: set({ type: ["string", "integer"] }),
      valid: ['[1,"1",2]', '["a",1]'],
      invalid: ['[1,"1",1]', '["1",1,"1"]'],
    },
    anything: {
      schema: { type: "array", uniqueItems: true },
      valid: ['[1,"1",true,null,[],{}]', '["a",["a"]]'],
      invalid: ['["a",1,"a"]', "[[],[]]", "[null,1,null]", '[{"a":1,"b":2},{"b":2,"a":1}]'],
    },
    objects: {
      schema: set(point),
      valid: ['[{"x":1},{"x":1,"y":1},{"x":11}]'],
      invalid: ['[{"x":1},{"x":1}]', '[{"x":1},{"x": 1}]', '[{"x":1,"y":2},{"x":2},{"x":1,"y":2}]'],
    },
    "sets of sets, beside an array that may repeat": {
      schema: {
        type: "object",
        properties: { sets: set(set(text)), rows: { type: "array", items: text } },
        required: ["sets", "rows"],
      },
      valid: ['{"sets":[["a"],["b","a"],[]],"rows":["a","a"]}'],
      invalid: ['{"sets":[["a"],["a"]],"rows":[]}', '{"sets":[["a","a"]],"rows":[]}'],
    },
    "a set or a text": {
      schema: { anyOf: [text, set(text, { minItems: 1 })] },
      valid: ['"a"', '["a","b"]'],
      invalid: ['["a","a"]', "[]"],
    },
    "a tuple, then texts": {
      schema: { prefixItems: [{ enum: ["a", "b"] }, text], ...set(text) },
      valid: ['["a","c","b"]'],
      invalid: ['["a","a"]', '["a","c","c"]', '["c"]'],
    },
  };
  it.each(Object.entries(cases))("%s", async (_name, { schema, valid, invalid }) => {
    const accepts = await acceptor(engine, schema);
    if (typeof accepts === "string") throw new TypeError(accepts);
    for (const each of valid) expect(await accepts(each), each).toBe(true);
    for (const each of invalid) expect(await accepts(each), each).toBe(false);
  });
});

test.skipIf(!hasMasks)(
  "what is drawn differs, also where few items are left and near a limit",
  async () => {
    const few = { type: "string", pattern: "^[ab]{1,2}$" };
    const drawn = [
      set(few, { minItems: 6 }),
      set({ type: "integer", minimum: 1, maximum: 12 }, { minItems: 12 }),
      set({ type: "string", maxLength: 2 }, { minItems: 5 }),
      set(
        { ...point, properties: { x: { enum: [1, 2] }, y: { type: "boolean" } } },
        { minItems: 6 },
      ),
      set({ type: "string", format: "date" }, { minItems: 3, maxItems: 3 }),
      {
        type: "object",
        properties: { a: set(few, { minItems: 3 }), b: set(set(text), { minItems: 2 }) },
        required: ["a", "b"],
      },
    ];
    for (const schema of drawn) {
      const grammar = (await exactGrammar(engine, schema)) as Grammar;
      expect(grammar, JSON.stringify(schema)).toBeTypeOf("object");
      for (let seed = 1; seed <= 6; seed++) {
        const sampling = { ...greedy, temperature: seed % 2 === 0 ? 1.5 : 0.3, seed };
        const answer = engine.generate({
          prompt,
          grammar,
          sampling,
          maxTokens: 160,
          closeAtLimit: true,
        });
        const { text: written, finish } = await collect(answer);
        const fault = compileValidator(schema)(JSON.parse(written));
        expect(fault, `${JSON.stringify(schema)}\n${finish.reason} ${written}`).toBeNull();
      }
    }
  },
  300_000,
);
