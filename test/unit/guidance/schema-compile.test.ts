import { describe, expect, test } from "vitest";
import type { FermataError } from "../../../src/errors.ts";
import { compileSchema } from "../../../src/guidance/schema/compile.ts";
import { fractionsOf } from "../../../src/guidance/schema/write/fractions.ts";
import { compileValidator } from "../../../src/guidance/validator.ts";
import { many } from "../../support/attacks.ts";

const options = {
  closed: false,
  objectOnly: false,
};

function compile(schema: unknown, more: Partial<typeof options> = {}) {
  return compileSchema(schema, { ...options, ...more });
}

describe("rewrites", () => {
  test("oneOf whose branches exclude each other is anyOf", () => {
    const kind = (name: string) => ({
      type: "object",
      properties: { kind: { const: name } },
      required: ["kind"],
      additionalProperties: false,
    });
    const { schema, issues } = compile({ oneOf: [kind("a"), kind("b")] });
    expect(issues).toEqual([]);
    expect(schema?.["anyOf"]).toHaveLength(2);
  });

  test.each(["oneOf", "anyOf"])("%s with a discriminator needs it, default or not", (keyword) => {
    const kind = (name: string, more: object) => ({
      type: "object",
      properties: { kind: { const: name, default: name }, ...more },
      required: Object.keys(more),
    });
    const { schema, issues } = compile({
      $defs: { a: kind("a", { x: { type: "integer" } }), b: kind("b", {}) },
      discriminator: { propertyName: "kind" },
      [keyword]: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/b" }],
    });
    expect(issues).toEqual([]);
    expect(schema).toMatchObject({ anyOf: [{ required: ["kind", "x"] }, { required: ["kind"] }] });
  });

  test("a range that goes beyond 64 bits ends where the mask engine's does", () => {
    const furthest = 2 ** 63 - 1024;
    const range = (minimum: number, maximum: number) =>
      compile({ type: "number", minimum, maximum }).schema;
    expect(range(-(2 ** 63), 2 ** 63)).toMatchObject({ minimum: -furthest, maximum: furthest });
    expect(range(-1e300, 5)).toMatchObject({ minimum: -furthest, maximum: 5 });
    expect(range(-(2 ** 53), 2 ** 53)).toMatchObject({ minimum: -(2 ** 53), maximum: 2 ** 53 });
  });

  test.each([
    [{ type: "number", minimum: 2 ** 64 }, { type: "number" }, "#", "minimum"],
    [{ type: "number", exclusiveMinimum: 2 ** 63 }, { type: "number" }, "#", "exclusiveMinimum"],
    [{ type: "integer", maximum: -(2 ** 64) }, { type: "integer" }, "#", "maximum"],
    [{ type: "number", minimum: 2 ** 64, maximum: 2 ** 65 }, { type: "number" }, "#", "minimum"],
    [{ type: "number", not: { const: 1e20 } }, { type: "number" }, "#/not", "const"],
    [
      { type: "integer", minimum: 0, not: { enum: [1e19, 5] } },
      {
        anyOf: [
          { type: "integer", minimum: 0, exclusiveMaximum: 5 },
          { type: "integer", exclusiveMinimum: 5 },
        ],
      },
      "#/not",
      "enum",
    ],
  ])("%j: what lies beyond 64 bits is left to the validation", (schema, written, path, keyword) => {
    const compiled = compile(schema);
    expect(compiled.schema).toEqual(written);
    expect(compiled.issues).toEqual([expect.objectContaining({ path, keyword })]);
  });

  test("what lies beyond 64 bits and is not reached says nothing", () => {
    const { issues } = compile({ type: "number", maximum: 1e19, not: { const: 1e20 } });
    expect(issues).toEqual([]);
    expect(compile({ type: "number", minimum: 2 ** 64, maximum: 5 }).schema).toBeNull();
  });

  test.each([
    ["^(?P<year>\\d{4})-(?P<month>1[0-2])$", ["2024-11"], ["2024-13", "24-11"]],
    ["(?i)^yes|NO$", ["YES", "yes", "nO"], ["y", "n"]],
    ["(?i)^[\\u4e00-\\u9fff]x[^–]$", ["漢X-", "字xz"], ["aX-", "漢x–"]],
    ["(?is)^[b-d]é.$", ["BÉ\n", "dé1"], ["aé1", "bé"]],
    ["^[(?P<]\\(\\?P<$", ["P(?P<"], ["X(?P<"]],
  ])("pattern %s: as Python and Rust read it", (pattern, matching, others) => {
    const { schema, issues } = compile({ type: "string", pattern });
    expect(issues).toEqual([]);
    const mask = new RegExp(String(schema?.["pattern"]).replaceAll("\\x{", "\\u{"), "u");
    const validate = compileValidator({ type: "string", pattern });
    const long = "x".repeat(2000);
    for (const text of matching) {
      expect(mask.test(text), text).toBe(true);
      expect(validate(text)).toBeNull();
    }
    for (const text of [...others, long]) {
      expect(mask.test(text), text).toBe(false);
      expect(validate(text)).toMatchObject({ isCertain: true });
    }
  });

  test.each([
    "(?i)^[^à-ÿ]$",
    "(?i)^[à-ÿ]$",
    "(?i)^[^é]$",
    "(?i)^ı$",
    "(?i)^ß$",
    "(?i)^\\p{Lu}$",
    "(?i)^[a\\p{Lu}]$",
  ])("pattern %s: the case of letters beyond ASCII is not told", (pattern) => {
    const { schema, issues } = compile({ type: "string", pattern });
    expect(schema).toEqual({ type: "string" });
    expect(issues).toEqual([expect.objectContaining({ keyword: "pattern" })]);
  });

  test("pattern (?i)^[^s]$ excludes all forms of it", () => {
    const { schema, issues } = compile({ type: "string", pattern: "(?i)^[^s]$" });
    expect(issues).toEqual([]);
    const mask = new RegExp(String(schema?.["pattern"]).replaceAll("\\x{", "\\u{"), "u");
    expect(["s", "S", "ſ", "t", "é"].filter((text) => mask.test(text))).toEqual(["t", "é"]);
    expect(compile({ type: "string", pattern: "(?i)^[\\s,]x$" }).issues).toEqual([]);
  });

  test.each([
    [
      "email",
      "^(?:[\\w'+\\-]+\\.)*[\\w'+\\-]*[\\w+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
    ],
    ["uuid", "^([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|f{8}-f{4})$"],
    ["date-time", "^\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01]))T\\d\\d:[0-5]\\d:00Z$"],
    ["base64", "^$|^(?:[0-9a-zA-Z+/]{4})*(?:[0-9a-zA-Z+/]{2}==|[0-9a-zA-Z+/]{3}=)?$"],
  ])("the format %s beside a pattern for the same, as Zod writes them", (format, pattern) => {
    const { schema, issues } = compile({ type: "string", format, pattern });
    expect(issues).toEqual([]);
    expect(schema?.["allOf"]).toHaveLength(2);
  });

  test.each([
    ["^(?=.*[A-Z])(?=.*\\d).{8,}$", ["Passw0rds", "0123456A"], ["passw0rds", "Passwords", "Pass0"]],
    // Pydantic's decimals, and addresses of Zod's.
    [
      "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$",
      ["1", "-0.5", ".5", "+7."],
      ["", "-", ".", "-.", "1.2.3"],
    ],
    ["^(?!\\.)(?!.*\\.\\.)[a-z.]*[a-z]@[a-z]+$", ["a@b", "a.b.c@d"], [".a@b", "a..b@c", "a.@b"]],
    [
      "^(?!admin|root)[a-z]+$",
      ["user", "adm", "ro", "aroot"],
      ["admin", "rooted", "administrator"],
    ],
    ["^(?!.*.x)[a-y]+$", ["x", "abc", "xy"], ["ax", "abxc"]],
  ])("pattern %s: what it looks ahead at is held too", (pattern, matching, others) => {
    const { schema, issues } = compile({ type: "string", pattern });
    expect(issues).toEqual([]);
    const { allOf = [schema], minLength = 0 } = schema as { allOf?: unknown; minLength?: number };
    const masks = (allOf as { pattern: string }[]).map(
      (each) => new RegExp(each.pattern.replaceAll("\\x{", "\\u{"), "u"),
    );
    const validate = compileValidator({ type: "string", pattern });
    for (const text of [...matching, ...others]) {
      const isMatching = matching.includes(text);
      expect(text.length >= minLength && masks.every((mask) => mask.test(text)), text).toBe(
        isMatching,
      );
      expect(validate(text) === null, text).toBe(isMatching);
    }
  });

  test.each([
    ["^(?!a|\\p{L})x", "excludes a Unicode property"],
    ["^(?!.*(?:abc){200})x", "excludes too much"],
  ])("pattern %s looks ahead where it cannot be held", (pattern, reason) => {
    const { issues } = compile({ type: "string", pattern });
    expect(issues).toEqual([expect.objectContaining({ reason: `has a pattern that ${reason}` })]);
  });

  test("patterns whose automaton is large together are not held together", () => {
    const pattern = (letter: string) => ({ pattern: `^.*${letter}.{6}b.{6}$` });
    const { issues } = compile({ type: "string", allOf: [pattern("a"), pattern("[ab]")] });
    expect(issues).toEqual([expect.objectContaining({ keyword: "pattern" })]);
  });

  test.each([
    ["^.*\\p{Lu}.{16}\\p{Lu}.{16}$", "^.*\\p{N}.{16}\\p{N}.{16}$"],
    ["^\\p{Lu}\\p{L}{1,30} \\p{L}{1,30}$", "^.{3,40} .{1,20}$"],
  ])("patterns that count properties are not held together: %s", (one, other) => {
    const { issues } = compile({ type: "string", allOf: [{ pattern: one }, { pattern: other }] });
    expect(issues).toEqual([expect.objectContaining({ keyword: "pattern" })]);
  });

  test("oneOf whose branches overlap excludes the overlap", () => {
    const { schema } = compile({ type: "integer", oneOf: [{ minimum: 0 }, { maximum: 5 }] });
    expect(schema).toEqual({
      anyOf: [
        { type: "integer", exclusiveMinimum: 5 },
        { type: "integer", exclusiveMaximum: 0 },
      ],
    });
  });

  test.each(["int", "any", ["string", "str"]])("type %j says nothing, and is told", (type) => {
    const schema = { type: "object", properties: { a: { type } }, required: ["a"] };
    const compiled = compile(schema);
    expect(compiled.schema).toMatchObject({ type: "object", required: ["a"] });
    expect(compiled.issues).toEqual([
      expect.objectContaining({
        keyword: "type",
        reason: "names no type of JSON Schema",
        isMistake: true,
      }),
    ]);
  });

  test("not, of a constant, is a pattern of all but it", () => {
    const { schema, issues } = compile({ type: "string", not: { const: "no" } });
    expect(issues).toEqual([]);
    const regex = new RegExp(String(schema?.["pattern"]).replaceAll("\\x{", "\\u{"), "u");
    expect(["", "n", "no", "nothing", "yes"].filter((text) => regex.test(text))).toEqual([
      "",
      "n",
      "nothing",
      "yes",
    ]);
  });

  test("a text that is long is not written as a pattern, as deep as it is long", () => {
    const long = "x".repeat(50_000);
    const { issues } = compile({ type: "string", not: { enum: [long, "no"] } });
    expect(issues).toEqual([expect.objectContaining({ path: "#/not", keyword: "enum" })]);
    const values = [...many(1001, String), long];
    expect(compile({ enum: values }).schema).toEqual({ type: "string", enum: values });
  });

  test("a dependency leaves out the one or demands both", () => {
    const { schema } = compile({
      type: "object",
      properties: { a: { const: 1 }, b: { const: 2 } },
      additionalProperties: false,
      dependentRequired: { a: ["b"] },
    });
    expect(schema?.["anyOf"]).toEqual([
      { type: "object", properties: { b: { enum: [2] } }, additionalProperties: false },
      {
        type: "object",
        properties: { a: { enum: [1] }, b: { enum: [2] } },
        required: ["a", "b"],
        additionalProperties: false,
      },
    ]);
  });

  test("draft 4: id is a target of references, a boolean makes a limit exclusive", () => {
    const { schema, issues } = compile({
      id: "http://example.com/range",
      properties: { low: { $ref: "#bound" } },
      required: ["low"],
      additionalProperties: false,
      type: "object",
      definitions: {
        b: { id: "#bound", type: "number", minimum: 1, maximum: 9, exclusiveMaximum: true },
      },
    });
    expect(issues).toEqual([]);
    const low = { type: "number", minimum: 1, exclusiveMaximum: 9 };
    expect(schema?.["properties"]).toEqual({ low });
  });

  test("without $schema, an id that no reference names is a name", () => {
    const user = { id: "User", type: "string" };
    const post = { id: "Post", type: "object", properties: { by: { $ref: "#/$defs/User" } } };
    const properties = { post: { $ref: "#/$defs/Post" } };
    const { schema, issues } = compile({ properties, $defs: { Post: post, User: user } });
    expect(issues).toEqual([]);
    expect(JSON.stringify(schema)).toContain('"by":{"type":"string"}');
    const byId = compile({
      properties: { post: { $ref: "Post" }, user: { $ref: "urn:my:User" } },
      definitions: { a: { ...post, properties: {} }, b: { ...user, id: "urn:my:User" } },
    });
    expect(byId.issues).toEqual([]);
    expect(JSON.stringify(byId.schema)).toContain('"user":{"type":"string"}');
  });

  test.each(["dependencies", "additionalItems", "items"])(
    "a property called %s leaves the draft as it is",
    (name) => {
      const { schema } = compile({
        properties: { [name]: { type: "object" }, x: { $ref: "#/$defs/a", minLength: 3 } },
        $defs: { a: { type: "string" }, dependencies: { type: "null" } },
      });
      expect(JSON.stringify(schema)).toContain('"x":{"type":"string","minLength":3}');
    },
  );

  test.each([
    { minimum: 0.2, maximum: 0.4 },
    { exclusiveMinimum: 3, exclusiveMaximum: 4 },
    { minimum: 0, maximum: 1, not: { enum: [0, 1] } },
  ])("no integer lies in %j", (limits) => {
    expect(compile({ type: "integer", ...limits }).schema).toBeNull();
    expect(compile({ type: "number", ...limits }).schema).not.toBeNull();
  });

  test.each([
    [{ minimum: 5, maximum: 6, multipleOf: 7 }, false],
    [{ exclusiveMinimum: 0, exclusiveMaximum: 0.25, multipleOf: 0.25 }, false],
    [{ minimum: 5, maximum: 7, multipleOf: 7 }, true],
    [{ minimum: -0.2, maximum: 0.1, multipleOf: 0.25 }, true],
    [{ minimum: 0.7, maximum: 0.7, multipleOf: 0.1 }, true],
  ])("whether a multiple lies in %j", (limits, isThere) => {
    expect(compile({ type: "number", ...limits }).schema !== null).toBe(isThere);
  });

  test.each([
    [{ allOf: [{ pattern: "^a" }, { pattern: "^[b-d]" }] }, false],
    [{ pattern: "^[a-f]+$", not: { pattern: "^[a-f]*$" } }, false],
    [{ pattern: "^[a-f]*$", not: { pattern: "^[a-f]+$" } }, true],
    [{ format: "date", pattern: "^[a-z]" }, false],
  ])("whether a text has all that %j says", (schema, isThere) => {
    expect(compile({ type: "string", ...schema }).schema !== null).toBe(isThere);
    const object = { type: "object", properties: { a: schema }, required: ["a"] };
    const either = compile({ anyOf: [object, { type: "array", items: object }] });
    expect(either.issues).toEqual([]);
  });

  test.each([
    ["uri", "^https?://\\[v1", "https://[v1.a]/"],
    ["time", ":60Z$", "23:59:60Z"],
    ["date", "^0000-", "0000-01-01"],
    ["hostname", "\\.$", "example.com."],
    ["uuid", "^urn:uuid:", "urn:uuid:9b2a1c3e-0f4d-4a5b-8c6d-7e8f9a0b1c2d"],
  ])("%s beside %s: what its mask refuses is left to the validator", (format, pattern, text) => {
    const schema = { type: "string", format, pattern };
    expect(compileValidator(schema)(text)).toBeNull();
    const compiled = compile(schema);
    expect(compiled.issues).toEqual([
      { path: "#", keyword: "format", reason: expect.stringMatching(/^has a mask/u) },
    ]);
    const { pattern: written } = compiled.schema as { pattern: string };
    expect(new RegExp(written.replaceAll("\\x{", "\\u{"), "u").test(text)).toBe(true);
    expect(compile({ format, enum: [text, "no!"] })).toMatchObject({
      schema: { type: "string", enum: [text] },
      issues: [],
    });
  });

  test("a constant is of a format if the validator says so", () => {
    const { schema, issues } = compile({
      type: "string",
      format: "email",
      enum: ["ann@example.com", "a@b.xn--p1ai", "a@b@c.de"],
    });
    expect(issues).toEqual([]);
    expect(schema).toEqual({ type: "string", enum: ["ann@example.com", "a@b.xn--p1ai"] });
  });

  test("a text longer than a format's mask is left to the validator", () => {
    const { schema, issues } = compile({ type: "string", format: "hostname", minLength: 254 });
    expect(schema).toEqual({ type: "string", minLength: 254 });
    expect(issues).toEqual([expect.objectContaining({ path: "#", keyword: "format" })]);
  });

  test.each([
    ["date", "date-time"],
    ["ipv4", "uuid"],
    ["duration", "time"],
  ])("%s and %s have no text in common", (one, other) => {
    const formats = [{ format: one }, { format: other }];
    expect(compile({ type: "string", allOf: formats }).schema).toBeNull();
    const { schema, issues } = compile({ type: "string", oneOf: formats });
    expect(issues).toEqual([]);
    expect(schema?.["anyOf"]).toHaveLength(2);
  });

  test("of listed values, those of the format stay", () => {
    const { schema, issues } = compile({ enum: ["::1", "one", "P1D"], format: "ipv6" });
    expect(issues).toEqual([]);
    expect(schema).toEqual({ type: "string", enum: ["::1"] });
  });

  test("what has no limit gets none", () => {
    const schema = {
      type: "array",
      items: { type: "object", properties: { n: { type: "integer" } } },
    };
    expect(compile(schema).schema).toMatchObject({
      type: "array",
      items: { properties: { n: { type: "integer" } }, additionalProperties: {} },
    });
    expect(compile({ type: "string" }).schema).toEqual({ type: "string" });
    expect(compile({ type: "array", items: { type: "null" } }).schema).toEqual({
      type: "array",
      items: { type: "null" },
    });
  });

  test("a tool's object has no other properties unless its schema says so", () => {
    const schema = { type: "object", properties: { a: { type: "null" } } };
    const tool = { closed: true, objectOnly: true };
    expect(compile(schema, tool).schema?.["additionalProperties"]).toBe(false);
    expect(compile(schema).schema?.["additionalProperties"]).not.toBe(false);
    const open = { ...schema, additionalProperties: { type: "null" } };
    expect(compile(open, tool).schema?.["additionalProperties"]).toEqual({ type: "null" });
  });

  test.each([true, { type: "string" }])("names that may be %j say nothing", (propertyNames) => {
    const properties = { a: { type: "null" } };
    const rest = { patternProperties: { "^x_": { type: "null" } }, additionalProperties: {} };
    const { schema, issues } = compile({ type: "object", properties, ...rest, propertyNames });
    expect(issues).toEqual([]);
    expect(schema).toEqual(compile({ type: "object", properties, ...rest }).schema);
    expect(schema).toMatchObject({ properties, additionalProperties: {} });
  });

  test.each([
    ["^[a-z]$", "^(?:[b-z])$"],
    ["^[a-c_.-]$", "^(?:[\\x{2d}-\\x{2e}\\x{5f}b-c])$"],
  ])("names of %s are told from a listed one, but of another type", (pattern, others) => {
    const names = {
      type: "object",
      properties: { a: { type: "null" } },
      propertyNames: { pattern },
    };
    expect(compile(names).issues).toEqual([]);
    expect(compile({ ...names, additionalProperties: false }).issues).toEqual([]);
    const { schema, issues } = compile({ ...names, additionalProperties: { type: "string" } });
    expect(issues).toEqual([]);
    expect(schema).toMatchObject({
      properties: names.properties,
      patternProperties: { [others]: { type: "string" } },
      additionalProperties: false,
    });
  });

  test("recursion stays recursion, and what can never end is nothing", () => {
    const tree = {
      type: "object",
      properties: { left: { $ref: "#" }, right: { $ref: "#" } },
      additionalProperties: false,
    };
    expect(JSON.stringify(compile(tree).schema)).toContain("#/$defs/");
    expect(compile({ ...tree, required: ["left"] }).schema).toBeNull();
  });
});

describe("what no mask holds is named", () => {
  const manyFormats = ["uri-reference", "url", "uri"].map((format) => ({ format }));
  const texts = { type: "array", items: { type: "string" } };
  const integers = { type: "array", items: { type: "integer" } };
  const oneOfTwo = { type: "string", pattern: "^(?:[ab])$" };
  test.each([
    [
      { properties: { a: { type: "string", pattern: "x(?=y(?=z))" } } },
      "#/properties/a",
      "pattern",
    ],
    [{ items: { not: { pattern: "(?:abc){20}" } } }, "#/items/not", "pattern"],
    [{ anyOf: [{ ...texts, uniqueItems: true }, integers] }, "#/anyOf/0", "uniqueItems"],
    [{ ...texts, items: oneOfTwo, minItems: 3, uniqueItems: true }, "#", "uniqueItems"],
    [{ properties: { a: { minLength: "2" } } }, "#/properties/a", "minLength"],
    [{ not: { maximum: "2" } }, "#/not", "maximum"],
    [{ properties: { a: { maxLength: 40_001 } } }, "#/properties/a", "maxLength"],
    [{ items: { type: "string", minLength: 1e6 } }, "#/items", "minLength"],
    [{ properties: { a: { required: true } } }, "#/properties/a", "required"],
    [{ $ref: "https://example.com/a" }, "#", "$ref"],
    [{ properties: { a: { not: { enum: [2 ** 70] } } } }, "#/properties/a/not", "enum"],
    [{ items: { type: "number", maximum: 2.5, not: { type: "integer" } } }, "#/items/not", "type"],
    [
      { properties: { a: { type: "string", allOf: manyFormats } } },
      "#/properties/a/allOf/2",
      "format",
    ],
    [{ $defs: { "a/b": { minLength: "2" } }, $ref: "#/$defs/a~1b" }, "#/$defs/a~1b", "minLength"],
  ])("%j", (schema, path, keyword) => {
    expect(compile(schema).issues).toEqual([
      expect.objectContaining({ path, keyword, reason: expect.stringMatching(/^[a-z]/u) }),
    ]);
  });
});

test("a text that is too long to be excluded is named by its place", () => {
  const long = "x".repeat(1001);
  const schema = {
    properties: { a: { not: { const: long } } },
    additionalProperties: { not: { enum: ["y", long] } },
  };
  expect(compile(schema).issues).toMatchObject([
    { path: "#/properties/a/not", keyword: "const" },
    { path: "#/additionalProperties/not", keyword: "enum" },
  ]);
});

describe("limits", () => {
  const deep = (levels: number): unknown =>
    levels === 0 ? {} : { properties: { a: deep(levels - 1) } };
  const nested = (levels: number): unknown =>
    levels === 0
      ? { type: "string" }
      : { oneOf: [nested(levels - 1), { properties: { a: nested(levels - 1) } }] };
  const wide = Object.fromEntries(
    Array.from({ length: 30_000 }, (_, index) => [`p${index}`, { type: "string" }]),
  );

  test.each([
    ["nested too deep", deep(60)],
    ["too many values", { properties: wide }],
    ["too much text", { description: "x".repeat(1024 * 1024) }],
    ["nested oneOf", nested(12)],
    [
      "a product of choices",
      {
        allOf: Array.from({ length: 40 }, (_, index) => ({
          anyOf: [{ required: [`a${index}`] }, { required: [`b${index}`] }],
        })),
      },
    ],
  ])("%s: refused or worked off", (_name, schema) => {
    // Something exponential would not come back before the test's time is over.
    try {
      compile(schema);
    } catch (error) {
      expect((error as FermataError).code).toBe("schema_too_large");
    }
  });
});

test.each([
  "http://json-schema.org/draft-07/schema#",
  "https://json-schema.org/draft/2019-09/schema",
  "https://json-schema.org/draft/2020-12/schema",
])("a reference to %s leads to the schema of schemas", ($ref) => {
  const schema = { type: "object", properties: { input: { $ref } }, required: ["input"] };
  const { issues, schema: compiled } = compile(schema);
  expect(issues.map(({ keyword }) => keyword)).not.toContain("$ref");
  expect(JSON.stringify(compiled)).toContain("maxLength");
  const validate = compileValidator(schema);
  expect(validate({ input: { type: "object", minLength: 1 } })?.isCertain ?? false).toBe(false);
  expect(validate({ input: 1 })).not.toBeNull();
});

test("a reference to the schema of draft 7 is validated, too", () => {
  const $ref = "http://json-schema.org/draft-07/schema#";
  const validate = compileValidator({ properties: { input: { $ref } } });
  expect(validate({ input: { properties: { a: { minLength: 1 } } } })).toBeNull();
  expect(validate({ input: { properties: { a: { minLength: "1" } } } })).toMatchObject({
    isCertain: true,
    place: "/input/properties/a/minLength",
  });
});

test("what is not worked out when the steps end is left open, and told", () => {
  const letters = many(40, (index) => String.fromCodePoint(0x400 + 2 * index)).join("");
  const hard = many(60, (index) => [
    `p${index}`,
    { type: "string", pattern: `^(?!(?:[${letters}]?){${1000 + index}}b)` },
  ]);
  const properties = { a: { const: "first" }, ...Object.fromEntries(hard), z: { const: "last" } };
  const { schema, issues } = compile({ type: "object", properties, required: ["a", "z"] });
  expect(issues.at(-1)).toMatchObject({ reason: expect.stringContaining("too many combinations") });
  expect(schema).toMatchObject({ type: "object", required: ["a", "z"] });
  expect(JSON.stringify(schema)).toContain("first");
  expect(JSON.stringify(schema)).not.toContain("last");
});

test("a schema takes the same steps whatever was compiled before it", () => {
  // Of other letters each time: nothing of it is known.
  const patterns = (letters: string) => ({
    type: "string",
    format: "email",
    allOf: many(5, (index) => ({ pattern: `^[${letters}]{${index}}.*[${letters}@.]$` })),
    not: { pattern: `^[${letters}]+x` },
  });
  const isEnough = (letters: string, maxSteps: number) => {
    try {
      compileSchema(patterns(letters), options, { maxSteps });
      return true;
    } catch {
      return false;
    }
  };
  const letters = many(13, (index) => String.fromCodePoint(0x61 + 2 * index)).join("");
  let low = 0;
  let high = 4096;
  for (let time = 0; low + 1 < high; time++) {
    const middle = (low + high) / 2;
    if (isEnough(`${letters}${String.fromCodePoint(0x4e00 + 2 * time)}`, middle)) high = middle;
    else low = middle;
  }
  expect(high).toBeGreaterThan(10);
  const known = `${letters}一`;
  compileSchema(patterns(known), options);
  expect(isEnough(known, high)).toBe(true);
  expect(isEnough(known, low)).toBe(false);
});

describe("what a short schema takes is counted in steps", () => {
  const kinds = many(40, (index) => String.fromCodePoint(0x400 + 2 * index)).join("");
  const pair = (index: number) => ({
    type: "string",
    allOf: [`[${kinds}].{4${10 + index}}b.{490}`, `b.{490}b.{4${10 + index}}`].map((end) => ({
      pattern: `^.*${end}$`,
    })),
  });
  const pairs = Object.fromEntries(many(24, (index) => [`p${index}`, pair(index)]));
  const names = (pattern: string, count: number) => ({
    properties: Object.fromEntries(many(count, (index) => ["a".repeat(index + 1), {}])),
    propertyNames: { pattern },
  });
  /** Either limit may be the lower one, which makes 200 combinations. */
  const combined = many(8, (index) => ({ not: { minLength: 500 + index, maxLength: index + 99 } }));

  test.each<[string, unknown]>([
    ["one pair of patterns", pair(0)],
    ["many pairs of patterns", { type: "object", properties: pairs }],
    ["what is looked ahead at", { type: "string", pattern: `^(?!(?:[${kinds}]?){1000}b)` }],
    ["names", names("^(?:a?){900}$", 40)],
    [
      "a pattern beside a listed name",
      {
        properties: { caaaaaaaab: {} },
        patternProperties: { "^c[ab]*a[ab]{7}$": { type: "null" } },
      },
    ],
    ["constants", { enum: ["a".repeat(900)], pattern: "^(?:a?){900}$" }],
    [
      "patterns of names",
      { patternProperties: { "^(?:a|b{90})*aa$": {}, "^(?:b|[a-z]{140})*bb$": {} } },
    ],
    [
      "a pattern that is read again and again",
      {
        type: "string",
        $defs: { a: { pattern: `^${"(a|b)".repeat(390)}$` } },
        anyOf: many(20, () => ({ $ref: "#/$defs/a" })),
      },
    ],
    ["combinations", { type: "string", not: { enum: many(90, String) }, allOf: combined }],
    [
      "variants",
      {
        type: "object",
        minProperties: 3,
        properties: Object.fromEntries(many(6, (index) => [`p${index}`, {}])),
        not: { required: many(300, (index) => `q${index}`) },
      },
    ],
  ])("%s", (_name, schema) => {
    expect(JSON.stringify(schema).length).toBeLessThan(4096);
    expect(() => compileSchema(schema, options, { maxSteps: 200 })).toThrow(
      expect.objectContaining({ code: "schema_too_large" }),
    );
  });

  test("with more of them only patterns are left out", () => {
    const looking = { type: "string", pattern: `^(?!(?:[${kinds}]?){9000}b)` };
    const { issues } = compile({ type: "object", properties: { ...pairs, looking } });
    expect(new Set(issues.map(({ keyword }) => keyword))).toEqual(new Set(["pattern"]));
    expect(issues).toHaveLength(25);
  });

  test("a format beside a pattern for the same takes few", () => {
    const uuid = { type: "string", format: "uuid", pattern: "^[0-9a-f]{8}-.{27}$" };
    const properties = Object.fromEntries(many(9, (index) => [`p${index}`, uuid]));
    expect(
      compileSchema({ type: "object", properties }, options, { maxSteps: 200 }).issues,
    ).toEqual([]);
  });
});

describe("large schemas, which masks hold whole", () => {
  const tagged = (index: number): unknown => ({
    type: "object",
    properties: { kind: { const: `k${index}` }, [`v${index}`]: { type: "integer" } },
    required: ["kind"],
  });

  test.each(["oneOf", "anyOf"])("%s of 500 tagged objects", (keyword) => {
    const { schema, issues } = compile({ [keyword]: many(500, tagged) });
    expect(issues).toEqual([]);
    expect(schema?.["anyOf"]).toHaveLength(500);
  });

  test("500 definitions behind references", () => {
    const $defs = Object.fromEntries(many(500, (index) => [`d${index}`, tagged(index)]));
    const oneOf = many(500, (index) => ({ $ref: `#/$defs/d${index}` }));
    const { schema, issues } = compile({
      properties: { list: { type: "array", items: { oneOf } } },
      type: "object",
      $defs,
    });
    expect(issues).toEqual([]);
    expect(JSON.stringify(schema)).toContain('"k499"');
  });

  test("an enum of 50,000", () => {
    const values = many(50_000, (index) => `value ${index}.`);
    const { schema, issues } = compile({ enum: values });
    expect(issues).toEqual([]);
    const regex = new RegExp(String(schema?.["pattern"]).replaceAll("\\x{", "\\u{"), "u");
    for (const value of [values[0]!, values[777]!, values.at(-1)!])
      expect(regex.test(value)).toBe(true);
    for (const other of ["value 50000.", "value 1", "value 1.."])
      expect(regex.test(other)).toBe(false);
  });

  test("a chain of 500 references, each a level down: not nested so in the result", () => {
    const links = many(500, (index) => [
      `d${index}`,
      { type: "object", properties: { n: { $ref: `#/$defs/d${index + 1}` } } },
    ]);
    const $defs = { ...Object.fromEntries(links), d500: { type: "string" } };
    const { schema, issues } = compile({ $ref: "#/$defs/d0", $defs });
    expect(issues).toEqual([]);
    let depth = 0;
    let most = 0;
    for (const letter of JSON.stringify(schema)) {
      if ("{[".includes(letter)) most = Math.max(most, (depth += 1));
      if ("}]".includes(letter)) depth -= 1;
    }
    expect(most).toBeLessThan(60);
  });
});

test("a part that is written in many places is worked out once", () => {
  let written = 0;
  const part = (level: number): unknown => ({
    type: "object",
    description: `Number ${(written += 1)}`,
    properties: Object.fromEntries(
      many(level === 0 ? 0 : 4, (index) => [`p${index}`, part(level - 1)]),
    ),
  });
  expect(compileSchema(part(5), options, { maxSteps: 200 }).issues).toEqual([]);
});

describe("lengths beside patterns, which the mask engine must find a text for before it begins", () => {
  const string = (more: object) => compile({ type: "string", ...more });

  test.each([
    [{ format: "date-time", maxLength: 10 }],
    [{ format: "uuid", minLength: 50, maxLength: 60, pattern: "^[0-9a-f-]{36}$" }],
    [{ pattern: "^a{3}$", minLength: 4 }],
    [{ pattern: "a{3}", maxLength: 2 }],
    [{ pattern: "^[\\u4e00-\\u9fff]+$", format: "json-pointer" }],
  ])("%j leaves no text", (more) => {
    expect(string(more).schema).toBeNull();
  });

  test("the one part of any length has the rest of it", () => {
    const { schema, issues } = string({ pattern: "^[A-Z].*[.!?]$", minLength: 50, maxLength: 90 });
    expect(issues).toEqual([]);
    expect(Object.keys(schema ?? {})).toEqual(["type", "pattern"]);
    const mask = new RegExp(String(schema?.["pattern"]).replaceAll("\\x{", "\\u{"), "u");
    for (const [length, isLetThrough] of [
      [49, false],
      [50, true],
      [90, true],
      [91, false],
    ] as const)
      expect(mask.test(`A${"é".repeat(length - 2)}.`), `${length}`).toBe(isLetThrough);
  });

  test("a long one beside others is told, and as much of it enforced as can be", () => {
    const { schema, issues } = string({ pattern: "x", minLength: 100 });
    expect(issues).toEqual([
      { path: "#", keyword: "minLength", reason: "is more than 25 beside a pattern or a format" },
    ]);
    expect(schema?.["minLength"]).toBe(25);
    expect(string({ pattern: "x", minLength: 25, maxLength: 5000 }).issues).toEqual([]);
  });

  test("a constant of another length need not be excluded", () => {
    const { schema } = string({ minLength: 100, not: { enum: ["abc", "y".repeat(99)] } });
    expect(schema).toEqual({ type: "string", minLength: 100 });
  });
});

test("unevaluatedItems beside contains: what it finds is evaluated, but not in 2019-09", () => {
  const schema = {
    type: "array",
    prefixItems: [{ type: "null" }],
    contains: { $ref: "#/$defs/text" },
    unevaluatedItems: { type: "boolean" },
    maxItems: 2,
    $defs: { text: { type: "string" } },
  };
  expect(compile(schema)).toEqual({
    issues: [],
    schema: {
      type: "array",
      prefixItems: [{ type: "null" }, { type: "string" }],
      items: { anyOf: [{ type: "string" }, { type: "boolean" }] },
      minItems: 2,
      maxItems: 2,
    },
  });
  const { prefixItems, ...others } = schema;
  const older = { $schema: "https://json-schema.org/draft/2019-09/schema", ...others };
  expect(compile(others).schema).not.toBeNull();
  expect(compile({ ...older, items: prefixItems }).schema).toBeNull();
});

test.each([
  ["unevaluatedProperties", { required: ["a"] }],
  ["unevaluatedItems", { minItems: 2 }],
  ["patternProperties", { required: ["a"] }],
  ["propertyNames", { required: ["a"] }],
  ["additionalProperties", { required: ["a"] }],
])("%s that any value satisfies cannot fail", (keyword, needed) => {
  const any = keyword === "patternProperties" ? { x: {}, y: true } : {};
  const schema = { type: ["object", "array"], properties: { a: {} }, minProperties: 0 };
  expect(compile({ ...schema, not: { ...needed, [keyword]: any } })).toEqual(
    compile({ ...schema, not: needed }),
  );
});

test("numbers that are no integers, within limits that are", () => {
  const texts = (low: number | null, high: number | null) => {
    const schema = {
      type: "number",
      not: { type: "integer" },
      ...(low === null ? {} : { minimum: low }),
      ...(high === null ? {} : { exclusiveMaximum: high }),
    };
    const { schema: compiled, issues } = compile(schema);
    expect(issues).toEqual([]);
    return compiled === null ? null : new RegExp(`^(?:${fractionsOf(compiled)})$`, "u");
  };
  const limits = [null, -120, -10, -1, 0, 1, 9, 10, 101];
  for (const low of limits)
    for (const high of limits) {
      if (low !== null && high !== null && low >= high) continue;
      const mask = texts(low, high)!;
      for (let whole = -130; whole <= 130; whole++)
        for (const text of [`${whole}`, `${whole}.0`, `${whole}.5`, `${whole}.010`]) {
          const value = Number(text);
          const isOne = !Number.isInteger(value) && value > (low ?? -1e9) && value < (high ?? 1e9);
          expect(mask.test(text), `${low} ${high} ${text}`).toBe(isOne);
        }
    }
  expect(texts(3, 3)).toBeNull();
  // Counted properties are not written in rules.
  const counted = { minProperties: 2, additionalProperties: { not: { type: "integer" } } };
  expect(compile(counted).issues).toEqual([expect.objectContaining({ keyword: "type" })]);
});

test("multiples that have none in common in the range leave no number", () => {
  const range = { exclusiveMinimum: 0.5, exclusiveMaximum: 15, multipleOf: 7.5 };
  expect(compile({ type: "number", ...range }).schema).not.toBeNull();
  expect(compile({ type: "integer", ...range }).schema).toBeNull();
  expect(compile({ type: "integer", ...range, exclusiveMaximum: 16 }).schema).not.toBeNull();
  const both = { allOf: [{ multipleOf: 4 }, { multipleOf: 6 }], minimum: 1 };
  expect(compile({ type: "integer", ...both, maximum: 11 }).schema).toBeNull();
  expect(compile({ type: "integer", ...both, maximum: 12 }).schema).not.toBeNull();
});

test("what is said beside references to the same is written once", () => {
  const { schema, issues } = compile({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: Object.fromEntries(
      many(50, (index) => [`p${index}`, { $ref: "#", type: "object", description: `${index}` }]),
    ),
    minProperties: 0,
  });
  expect(issues).toEqual([]);
  expect(Object.keys(schema?.["$defs"] ?? {})).toHaveLength(1);
  const properties = schema?.["properties"] as Record<string, unknown>;
  expect(properties["p49"]).toEqual(properties["p0"]);
});

describe("oneOf told apart by a property that is required beside it", () => {
  const kinds = many(12, (index) => ({
    properties: { kind: { enum: [`k${index}`] }, [`v${index}`]: { type: "integer" } },
  }));
  const other = {
    not: { required: ["kind"], properties: { kind: { enum: many(12, (index) => `k${index}`) } } },
  };

  test.each([
    ["listed", kinds],
    ["with all others", [other, ...kinds]],
    ["by reference", many(12, (index) => ({ $ref: `#/$defs/d${index}` }))],
  ])("%s", (_name, oneOf) => {
    const { schema, issues } = compile({
      type: "object",
      required: ["kind"],
      properties: { kind: { type: "string" } },
      oneOf,
      $defs: Object.fromEntries(kinds.map((kind, index) => [`d${index}`, kind])),
    });
    expect(issues).toEqual([]);
    const branches = schema?.["anyOf"] as { properties: Record<string, unknown> }[];
    expect(branches).toHaveLength(oneOf.length);
    expect(branches.at(-1)?.properties).toEqual({
      kind: { type: "string", enum: ["k11"] },
      v11: { type: "integer" },
    });
  });
});

test("names that patterns match in too many ways are left open, not forbidden", () => {
  const patterns = ["name", "tags", "vars", "when"].map((name) => [name, { type: "string" }]);
  const { schema, issues } = compile({
    type: "object",
    patternProperties: Object.fromEntries(patterns),
    additionalProperties: false,
  });
  expect(issues).toEqual([expect.objectContaining({ keyword: "patternProperties" })]);
  expect(schema).toEqual({ type: "object", properties: {}, additionalProperties: {} });
});
