// Texts of single schemas, walked through their masks: valid ones that the mask engine refuses by itself.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { acceptor } from "../support/schema-suite.ts";

let engine: Engine;

beforeAll(async () => {
  engine = await loadTestEngine({ contextSize: 64, parallel: 1, audit: false });
});
afterAll(() => engine.close());

interface Case {
  schema: object;
  valid: readonly unknown[];
  invalid: readonly unknown[];
}

const number = (limits: object): object => ({ type: "number", ...limits });

const cases: Record<string, Case> = {
  "a maximum with decimals": {
    schema: number({ minimum: 0, maximum: 99.95 }),
    valid: [0, 99, 99.9, 99.95, 99.94, 99.899, 9.9],
    invalid: [99.96, 99.951, 100, -0.5],
  },
  "an exclusive maximum with decimals": {
    schema: number({ exclusiveMaximum: 0.125 }),
    valid: [0.1, 0.12, 0.1249, 0, -7.5],
    invalid: [0.125, 0.13, 0.2],
  },
  "a minimum below zero with decimals": {
    schema: number({ minimum: -122.419, maximum: -122.25 }),
    valid: [-122.4, -122.41, -122.419, -122.3],
    invalid: [-122.42, -122.2, -122, -123],
  },
  "a limit with decimals, of multiples": {
    schema: number({ minimum: 0, maximum: 1.75, multipleOf: 0.25 }),
    valid: [0, 0.5, 1.75],
    invalid: [1.7, 2],
  },
  "multiples with fewer decimals": {
    schema: number({ multipleOf: 0.25 }),
    valid: [0, 1, 0.5, -12.5, 100.75],
    invalid: [0.3, 1.7, 0.55],
  },
  "multiples of two numbers with fewer decimals": {
    schema: number({ allOf: [{ multipleOf: 0.02 }, { multipleOf: 0.05 }] }),
    valid: [0.1, 0.7, 3, 1.9],
    invalid: [0.02, 0.05, 0.15],
  },
  "a number that is not a limit's beginning": {
    schema: number({ minimum: 0, maximum: 2.25, not: { const: 2.2 } }),
    valid: [2.25, 2.1],
    invalid: [2.2],
  },
  "a minimum of nineteen digits": {
    schema: number({ minimum: 5e18 }),
    valid: [5e18, 6e18],
    invalid: [4e18, 5],
  },
  "IPv6 that ends with IPv4": {
    schema: { type: "string", format: "ipv6" },
    valid: ["::ffff:192.0.2.33", "64:ff9b::192.0.2.33", "1:2:3:4:5:6:1.2.3.4", "2001:db8::1"],
    invalid: ["::ffff:256.0.2.33", "1:2:3:4:5:6:7:1.2.3.4", "1:2"],
  },
};

const record = {
  $defs: { value: { anyOf: [{ type: "string" }, { $ref: "#" }] } },
  type: "object",
  properties: { kind: { const: "a" }, next: { $ref: "#/$defs/value" } },
  patternProperties: { "^[a-z_]+$": { $ref: "#/$defs/value" } },
  additionalProperties: false,
};

const constants = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `v${index}`);

Object.assign(cases, {
  "a pattern of names that listed ones match, referring to the object itself": {
    schema: record,
    valid: [{}, { kind: "a" }, { kind: "a", next: { kinds: "b" } }, { nex: "b", kin: { a: {} } }],
    invalid: [{ kind: "b" }, { next: 1 }, { other: 1 }, { Other: "a" }],
  },
  "patterns that may match the same name": {
    schema: {
      type: "object",
      properties: { ab: { type: "integer" }, c: {} },
      patternProperties: {
        "^a": { type: "integer" },
        b$: { minimum: 5 },
        "^a.*b$": { maximum: 8 },
      },
      additionalProperties: false,
    },
    valid: [{}, { ab: 5, c: 1, a: 1, b: 7, xb: "x", axb: 8 }],
    invalid: [{ ab: 4 }, { a: "x" }, { b: 4 }, { axb: 9 }, { axb: "x" }, { x: 1 }],
  },
  "a pattern of names beside one that all names have": {
    schema: {
      type: "object",
      propertyNames: { pattern: "^[a-z]+$" },
      patternProperties: { "^a": { type: "integer" } },
      additionalProperties: { type: "string" },
    },
    valid: [{}, { a: 1, ab: 2, b: "x" }],
    invalid: [{ a: "x" }, { b: 1 }, { a1: 1 }, { B: "x" }],
  },
  "branches that hold together, beside properties that none of them evaluates": {
    schema: {
      type: "object",
      anyOf: [
        { properties: { a: { type: "integer" } }, required: ["a"] },
        { properties: { b: { type: "integer" } }, required: ["b"] },
      ],
      unevaluatedProperties: false,
    },
    valid: [{ a: 1 }, { b: 1 }, { a: 1, b: 1 }],
    invalid: [{}, { a: 1, b: "x" }, { a: 1, c: 1 }],
  },
  "kinds that conditions tell apart": {
    schema: {
      type: "object",
      properties: { kind: { type: "string" }, value: {} },
      required: ["kind"],
      allOf: Array.from({ length: 12 }, (_, index): unknown =>
        JSON.parse(`{
          "if": { "properties": { "kind": { "const": "k${index}" } } },
          "then": { "properties": { "value": { "const": ${index} } }, "required": ["value"] }
        }`),
      ),
    },
    valid: [{ kind: "k3", value: 3 }, { kind: "k11", value: 11 }, { kind: "other" }],
    invalid: [{ kind: "k3", value: 4 }, { kind: "k11" }, { value: 1 }],
  },
  "endings that exclude each other": {
    schema: {
      oneOf: [
        "less",
        "(?:scss|sass)",
        "styl",
        "coffee$|\\.litcoffee",
        "(?:jsx|js|es6)",
        "iced",
      ].map((ending) => ({ type: "string", pattern: `\\.${ending}$` })),
    },
    valid: ["a.less", "b.sass", ".litcoffee", "c.styl"],
    invalid: ["a.css", "less", "a.less.map"],
  },
  "a dynamic reference, which leads to the outermost anchor": {
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "https://example.com/strict-tree",
      $dynamicAnchor: "node",
      $ref: "tree",
      unevaluatedProperties: false,
      $defs: {
        tree: {
          $id: "tree",
          $dynamicAnchor: "node",
          type: "object",
          properties: { data: true, children: { type: "array", items: { $dynamicRef: "#node" } } },
        },
      },
    },
    valid: [{ data: 1 }, { children: [{ data: 1 }, { children: [{}] }] }],
    invalid: [{ daat: 1 }, { children: [{ daat: 1 }] }, { children: [1] }],
  },
  "dynamic references that lead elsewhere from each place": {
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "https://example.com/lists",
      type: "object",
      properties: { numbers: { $ref: "numbers" }, texts: { $ref: "texts" } },
      additionalProperties: false,
      $defs: {
        list: {
          $id: "list",
          type: "array",
          items: { $dynamicRef: "#item" },
          $defs: { any: { $dynamicAnchor: "item" } },
        },
        numbers: {
          $id: "numbers",
          $ref: "list",
          $defs: { item: { $dynamicAnchor: "item", type: "number" } },
        },
        texts: {
          $id: "texts",
          $ref: "list",
          $defs: { item: { $dynamicAnchor: "item", type: "string" } },
        },
      },
    },
    valid: [{ numbers: [1, 2], texts: ["a"] }, {}],
    invalid: [{ numbers: ["a"] }, { texts: [1] }],
  },
  "a recursive reference of draft 2019-09": {
    schema: {
      $schema: "https://json-schema.org/draft/2019-09/schema",
      $id: "https://example.com/strict",
      $recursiveAnchor: true,
      $ref: "node",
      unevaluatedProperties: false,
      $defs: {
        node: {
          $id: "node",
          $recursiveAnchor: true,
          type: "object",
          properties: { next: { $recursiveRef: "#" } },
        },
      },
    },
    valid: [{}, { next: { next: {} } }],
    invalid: [{ more: 1 }, { next: { more: 1 } }, { next: 1 }],
  },
  "names of one form beside listed ones of another type": {
    schema: {
      type: "object",
      properties: { id: { type: "integer" } },
      required: ["id"],
      propertyNames: { pattern: "^[a-z]+$" },
      additionalProperties: { type: "string" },
    },
    valid: [{ id: 1 }, { id: 1, idea: "a", i: "b" }],
    invalid: [{ id: "a" }, { id: 1, a: 1 }, { id: 1, A: "a" }],
  },
  "a list of words, each but the last with blanks behind it, in a long text": {
    schema: { type: "string", pattern: "^$|(^(?:\\S+\\s+){0,3}\\S+$)", maxLength: 5000 },
    valid: ["", "What", "What is this called?", "a  b\tc d"],
    invalid: ["What is this called now?", "a ", " a"],
  },
  "a list with commas in a long text": {
    schema: { type: "string", pattern: "^([^,]+,\\s*)*[^,]+$", minLength: 1, maxLength: 2000 },
    valid: ["a", "a, b,c"],
    invalid: ["", "a,", "a,,b"],
  },
  "five constants without repeats, in every order": {
    schema: { type: "array", items: { enum: ["a", "b", 3, true, null] }, uniqueItems: true },
    valid: [[], [null, "b"], ["b", "a"], [true, 3, "a", null, "b"], ["a", "b", 3, true, null]],
    invalid: [["a", "a"], [3, true, 3], ["a", "b", 3, true, null, "a"], ["c"]],
  },
  "two of many constants": {
    schema: { type: "array", items: { enum: constants(20) }, maxItems: 2, uniqueItems: true },
    valid: [[], ["v7"], ["v19", "v3"]],
    invalid: [
      ["v7", "v7"],
      ["v1", "v2", "v3"],
    ],
  },
  "63 constants without repeats, in every order": {
    schema: { type: "array", items: { enum: constants(63) }, minItems: 2, uniqueItems: true },
    valid: [["v62", "v0"], constants(63), constants(63).toReversed()],
    invalid: [[], ["v1"], ["v62", "v0", "v62"], [...constants(63), "v5"], ["v63", "v1"]],
  },
  "lists without repeats inside of objects, unions, tuples and what contains itself": {
    schema: {
      $defs: {
        days: { type: "array", items: { enum: constants(7) }, minItems: 1, uniqueItems: true },
        node: {
          type: "object",
          properties: {
            id: { type: "integer" },
            days: { anyOf: [{ type: "null" }, { $ref: "#/$defs/days" }, { type: "string" }] },
            pair: {
              type: "array",
              prefixItems: [{ $ref: "#/$defs/days" }, { type: "integer" }],
              items: { $ref: "#/$defs/days" },
              minItems: 1,
              maxItems: 4,
            },
            children: { type: "array", items: { $ref: "#/$defs/node" }, maxItems: 2 },
          },
          required: ["id"],
          additionalProperties: { $ref: "#/$defs/days" },
        },
      },
      $ref: "#/$defs/node",
    },
    valid: [
      { id: 1 },
      { id: 1, days: null },
      { id: 1, days: ["v6", "v1"], pair: [["v0"]], children: [] },
      { id: 1, days: "v", pair: [["v2", "v1"], 5, ["v1", "v2"], ["v1"]] },
      {
        id: 1,
        children: [
          { id: 2, days: ["v3"] },
          { id: 3, children: [{ id: 4 }] },
        ],
        'a "b"': ["v5"],
      },
    ],
    invalid: [
      { days: null },
      { id: 1, days: ["v6", "v6"] },
      { id: 1, pair: [] },
      { id: 1, pair: [["v2", "v1"], ["v1"]] },
      { id: 1, pair: [["v0"], 1, ["v0"], ["v0"], ["v0"]] },
      { id: 1, children: [{ id: 2, days: ["v3", "v4", "v3"] }] },
      { id: 1, id2: ["v1", "v1"] },
      { id: 1, children: [{ id: 1 }, { id: 1 }, { id: 1 }] },
    ],
  },
  "one of two closed kinds without anything that tells them apart": {
    schema: {
      oneOf: [
        { type: "object", properties: { only: { type: "integer" } }, additionalProperties: false },
        {
          type: "object",
          properties: { except: { type: "integer" } },
          additionalProperties: false,
        },
      ],
    },
    valid: [{ only: 1 }, { except: 2 }],
    invalid: [{}, { only: 1, except: 2 }, { only: "a" }],
  },
  "a kind with another property than a closed one has": {
    schema: {
      oneOf: [
        { type: "object", properties: { a: { type: "integer" }, b: { type: "string" } } },
        { type: "object", properties: { a: { type: "integer" } }, additionalProperties: false },
      ],
    },
    valid: [{ b: "x" }, { a: 1, b: "x" }, { c: 1 }, { a: 1, c: 2 }, { a: 1, b: "x", c: 1 }],
    invalid: [{}, { a: 1 }, { a: "x", b: "x" }, { b: 1 }],
  },
  "a property with a name, or of a form, that another kind does not have": {
    schema: {
      type: "object",
      properties: { a: {}, bb: {}, c: {} },
      additionalProperties: false,
      not: {
        anyOf: [
          { propertyNames: { maxLength: 1 } },
          { patternProperties: { "^c": { type: "string" } } },
        ],
      },
    },
    valid: [
      { bb: 1, c: 1 },
      { a: 1, bb: 1, c: [] },
    ],
    invalid: [{}, { a: 1 }, { bb: 1 }, { bb: 1, c: "x" }, { c: 1 }],
  },
  "a URI whose host is an address": {
    schema: { type: "string", format: "uri" },
    valid: ["http://[::1]:3000/a", "https://[fe80::1]/", "http://127.0.0.1/"],
    invalid: ["http://[::1", "http://[1:2]/"],
  },
  "a pattern that must not match": {
    schema: { type: "string", not: { pattern: "^(?:tmp|x-)" } },
    valid: ["", "tm", "a tmp", "x"],
    invalid: ["tmp", "x-a", "tmpfile"],
  },
  "a pattern that looks ahead, negated": {
    schema: { type: "string", not: { pattern: "^(?!a)[a-c]$" } },
    valid: ["a", "", "d", "bb"],
    invalid: ["b", "c"],
  },
});

describe.skipIf(!hasMasks).each(Object.entries(cases))("%s", (_, { schema, valid, invalid }) => {
  it("lets through what is valid, and nothing else", async () => {
    const accepts = await acceptor(engine, schema);
    if (typeof accepts === "string") throw new Error(accepts);
    const passed: unknown[] = [];
    for (const value of [...valid, ...invalid])
      if (await accepts(JSON.stringify(value))) passed.push(value);
    expect(passed).toEqual(valid);
  });
});
