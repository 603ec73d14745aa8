/** Patterns of other languages than JavaScript: read as they are meant, or not at all. */

import { describe, expect, test } from "vitest";
import { qwen } from "../../../src/chat/formats/formats.ts";
import { ConstraintMaker } from "../../../src/guidance/output-constraints.ts";
import { compileSchema } from "../../../src/guidance/schema/compile.ts";
import { compileValidator } from "../../../src/guidance/validator.ts";

function compile(pattern: string) {
  return compileSchema({ type: "string", pattern }, { closed: false, objectOnly: false });
}

/** Longer than what is matched without JavaScript's own engine. */
const long = "é".repeat(2000);

test.each<[pattern: string, matching: string[], others: string[]]>([
  ["\\A[A-Z]{3}\\z", ["ABC"], ["AABCz", "ABCD", "ABC\n"]],
  ["\\A\\d+\\Z", ["12"], ["A12Z", "a12"]],
  ["^[\\p{L}\\'\\- ]+$", ["Zoë O'Neil-B", long], ["p{L}", "1"]],
  ["^[\\p{L}\\d\\_-]+$", ["é_7-", long], ["{", "p}"]],
  ["^\\p{Lu}\\@\\#\\ \\-\\~x$", ["É@# -~x"], ["p{Lu}@# -~x", "É@#  ~x"]],
  ["^\\x{41}\\x{1F600}$", ["A😀"], ["x{41}x{1F600}"]],
  ["^[a-z]{,3}$", ["", "abc"], ["abcd", "a{,3}"]],
  ["^(?:ab){,2}c[{,2}]\\{,2}$", ["c{{,2}", "ababc,{,2}"], ["abababc,{,2}", "cc"]],
  // A comma that is escaped counts nothing.
  ["^a{1\\,2}$", ["a{1,2}"], ["a", "aa"]],
  // JavaScript reads them without the flag u alone.
  ["^[\\w-.]+$", ["a-b."], ["é"]],
  ["^{[a-z]+}\\/\\u0041$", ["{a}/A"], ["{1}/A"]],
])("pattern %s", (pattern, matching, others) => {
  const { schema, issues } = compile(pattern);
  expect(issues).toEqual([]);
  const mask = new RegExp(String(schema?.["pattern"]).replaceAll("\\x{", "\\u{"), "u");
  const validate = compileValidator({ type: "string", pattern });
  for (const text of [...matching, ...others]) {
    const isMatching = matching.includes(text);
    expect(mask.test(text), text).toBe(isMatching);
    expect(validate(text) === null, text).toBe(isMatching);
  }
});

test("a pattern that is matched by JavaScript alone is read so, too", () => {
  const validate = compileValidator({ type: "string", pattern: "\\A(?<=^)\\p{Lu}\\_{,2}\\z" });
  expect(validate("É__")).toBeNull();
  for (const text of ["É___", "p{Lu}_", "AÉ_z"])
    expect(validate(text), text).toMatchObject({ isCertain: true });
});

describe.each([
  "^[\\p{L}\\w-.]+$",
  "^\\p{L}{1,2}{a}$",
  "^\\h+$",
  "^[\\x{e9}-]+$",
  "\\Qa.b\\E",
  "^[[:alpha:]_]+$",
  "^[_[:^digit:]]+$",
  "^\\u{e9}{a}$",
])("pattern %s, which JavaScript would read as letters,", (pattern) => {
  test("is left out", () => {
    const { schema, issues } = compile(pattern);
    expect(schema).toEqual({ type: "string" });
    expect(issues).toEqual([
      expect.objectContaining({
        keyword: "pattern",
        reason: expect.stringContaining("is not a regular expression"),
      }),
    ]);
    const validate = compileValidator({ type: "string", pattern });
    expect(validate("a")).toMatchObject({ isCertain: false });
  });

  test("is refused for an answer", async () => {
    const maker = new ConstraintMaker({ syntax: qwen.syntax, markers: null, controls: [] });
    const document = { kind: "regex", pattern, field: "guided_regex" } as const;
    const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false, document } as const;
    await expect(maker.make({ tools: [], guidance })).rejects.toMatchObject({
      code: "invalid_value",
      param: "guided_regex",
    });
  });
});

test("a name that only such a pattern may match is not said to be wrong beside it", () => {
  const schema = {
    type: "object",
    patternProperties: { "^[[:alpha:]_]+$": { type: "string" } },
    additionalProperties: false,
  };
  expect(compileValidator(schema)({ foo: "x" })).toMatchObject({ isCertain: false });
  expect(compileValidator(schema)(5)).not.toBeNull();
});
