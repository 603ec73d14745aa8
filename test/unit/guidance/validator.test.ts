import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compileValidator } from "../../../src/guidance/validator.ts";

function problemOf(schema: unknown, value: unknown): string | null {
  return compileValidator(schema)(value)?.problem ?? null;
}

test("names the place and the problem", () => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  expect(problemOf(schema, { n: 1 })).toBeNull();
  expect(compileValidator(schema)({ n: "1" })).toEqual({
    problem: "/n must be integer",
    isCertain: true,
    place: "/n",
  });
  expect(problemOf(schema, {})).toBe("/ must have required property 'n'");
});

test("knows both drafts and formats", () => {
  expect(problemOf({ items: [{ type: "string" }] }, [1])).toBe("/0 must be string");
  expect(problemOf({ prefixItems: [{ type: "string" }] }, [1])).toBe("/0 must be string");
  const email = { type: "string", format: "email" };
  expect(problemOf(email, "nobody")).toBe('/ must match format "email"');
});

test("a schema that refers to all of itself", () => {
  const validate = compileValidator({
    type: "object",
    properties: { next: { $ref: "#" }, id: { type: "integer" } },
  });
  expect(validate({ next: { next: { id: 1 } } })).toBeNull();
  expect(validate({ next: { next: { id: "a" } } })).toMatchObject({
    problem: "/next/next/id must be integer",
    isCertain: true,
  });
});

test.each([
  [0.01, [19.99, 1.1, 0, -4.35, 1e9], [19.999, 1e-9]],
  [0.25, [0.5, 12.75], [0.3]],
  [2, [12_345_678_902], [12_345_678_901, 0.5]],
])("multiples of %d", (multipleOf, valid, invalid) => {
  const problem = `/ must be multiple of ${multipleOf}`;
  for (const value of valid) expect(problemOf({ multipleOf }, value), `${value}`).toBeNull();
  for (const value of invalid) expect(problemOf({ multipleOf }, value), `${value}`).toBe(problem);
});

test("a keyword of the validator's own that makes it answer later says nothing", () => {
  const later = { $async: true, type: "object", properties: { a: { $async: true, type: "null" } } };
  expect(problemOf(later, "a")).toBe("/ must be object");
  expect(problemOf(later, { a: 1 })).toBe("/a must be null");
  expect(problemOf({ properties: { $async: { type: "null" } } }, { $async: 1 })).toBe(
    "/$async must be null",
  );
});

test("tuples of draft 2019-09, which are those of draft 7, with what no branch has evaluated", () => {
  const $schema = "https://json-schema.org/draft/2019-09/schema";
  const tuple = { $schema, items: [{ type: "string" }], unevaluatedItems: { type: "null" } };
  expect(problemOf(tuple, ["a", null])).toBeNull();
  expect(problemOf(tuple, [1])).toBe("/0 must be string");
  expect(problemOf(tuple, ["a", 1])).toBe("/1 must be null");
});

test("a limit of a format, which no draft knows, says nothing", () => {
  const date = { type: "string", format: "date", formatMinimum: "2024-01-01" };
  expect(problemOf(date, "2023-12-31")).toBeNull();
  expect(problemOf({ ...date, formatMaximum: 1 }, "31/12")).toBe('/ must match format "date"');
});

test("judges each pattern by itself", () => {
  const schema = {
    properties: {
      a: { pattern: "^a+$" },
      b: { pattern: "^b+$" },
      // Read by JavaScript alone, by the second only without its flag u.
      c: { pattern: "^(?=c)\\w+$" },
      d: { pattern: "^(?=d)[\\w-.]+$" },
    },
    patternProperties: { "^x": { type: "number" }, "^y": { type: "string" } },
  };
  const right = { a: "aa", b: "bb", c: "cc", d: "d-d.", x: 1, y: "1" };
  expect(problemOf(schema, right)).toBeNull();
  for (const [name, wrong] of Object.entries({ a: "bb", b: "aa", c: "dd", d: "cc", x: "1", y: 1 }))
    expect(problemOf(schema, { ...right, [name]: wrong }), name).toMatch(`/${name} must`);
});

test("reads draft 4", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-04/schema#",
    id: "http://example.com/thing",
    properties: {
      id: { type: "string" },
      low: { minimum: 1, exclusiveMinimum: true },
      high: { maximum: 9, exclusiveMaximum: false },
      link: { $ref: "#size" },
      far: { $ref: "http://example.com/thing#/definitions/count" },
    },
    definitions: { size: { id: "#size", type: "integer" }, count: { type: "integer" } },
  };
  expect(problemOf(schema, { id: "a", low: 2, high: 9, link: 1, far: 2 })).toBeNull();
  expect(problemOf(schema, { low: 1 })).toBe("/low must be > 1");
  expect(problemOf(schema, { high: 10 })).toBe("/high must be <= 9");
  expect(problemOf(schema, { link: "1" })).toBe("/link must be integer");
  expect(problemOf(schema, { far: "1" })).toBe("/far must be integer");
  expect(problemOf(schema, { id: 1 })).toBe("/id must be string");
});

test.each([
  ["a reference to elsewhere", { $ref: "https://example.com/a.json" }, '"$ref" leads to nothing'],
  ["no type of JSON", { type: "any" }, '"type" has a value'],
  ["draft 3", { required: true }, '"required" has a value'],
  ["no regular expression", { pattern: "(" }, '"pattern" has a value'],
])("what cannot be judged by is told, and the rest judged: %s", (_name, part, reason) => {
  const validate = compileValidator({
    type: "object",
    properties: { part, n: { type: "integer" } },
  });
  expect(validate({ n: "1" })).toMatchObject({ problem: "/n must be integer", isCertain: true });
  expect(validate({ n: 1 })).toEqual({
    problem: expect.stringMatching(/^was not validated: at #\/properties\/part the keyword /u),
    isCertain: false,
  });
  expect(validate({})?.problem).toContain(reason);
});

test("a pattern that takes too long is told as such", () => {
  const validate = compileValidator({ type: "string", pattern: "^(?=aa)(a+)+$" });
  expect(validate("aaa")).toBeNull();
  expect(validate(`${"a".repeat(40)}!`)).toEqual({
    problem: expect.stringMatching(/^was not validated: the pattern .* takes too long/u),
    isCertain: false,
  });
});

/** Formats are judged, which the drafts leave open; of the others ajv does not see all that was evaluated. */
const readsOtherwise = new Set([
  "format",
  "unevaluatedItems",
  "unevaluatedProperties",
  "vocabulary",
]);

test.each(["draft2020-12", "draft7"])("judges as the test suite of %s", (draft) => {
  const url = new URL(`../../fixtures/json-schema-test-suite/${draft}.jsonl`, import.meta.url);
  const lines = readFileSync(url, "utf8").trim().split("\n");
  const wrong: string[] = [];
  let judged = 0;
  for (const line of lines) {
    const { keyword, description, schema, tests } = JSON.parse(line) as {
      keyword: string;
      description: string;
      schema: unknown;
      tests: { description: string; data: unknown; valid: boolean }[];
    };
    const dialect = { $schema: "http://json-schema.org/draft-07/schema#" };
    const isOld = draft === "draft7" && typeof schema === "object";
    const validate = compileValidator(isOld ? { ...dialect, ...schema } : schema);
    for (const { description: instance, data, valid } of tests) {
      const fault = validate(data);
      if (fault?.isCertain === false) continue;
      judged += 1;
      if ((fault === null) !== valid && !readsOtherwise.has(keyword))
        wrong.push(`${keyword}: ${description}: ${instance}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(judged).toBeGreaterThan(850);
});
