// Patterns that look around: what is written for the masks matches what JavaScript matches.
import { expect, test } from "vitest";
import { compileSchema } from "../../../src/guidance/schema/compile.ts";

const options = { closed: false, objectOnly: false };

interface Written {
  pattern?: string | undefined;
  minLength?: number | undefined;
  maxLength?: number | undefined;
  allOf?: Written[];
}

/** @returns whether masks let a text through */
function maskOf(schema: object): (text: string) => boolean {
  const compiled = compileSchema({ type: "string", ...schema }, options);
  expect(compiled.issues).toEqual([]);
  const written = (compiled.schema ?? { pattern: "[^\\s\\S]" }) as Written;
  const { minLength = 0, maxLength = Infinity, allOf = [written] } = written;
  const masks = allOf.flatMap(({ pattern }) =>
    pattern === undefined ? [] : [new RegExp(pattern.replaceAll("\\x{", "\\u{"), "u")],
  );
  return (text) => {
    const length = Array.from(text).length;
    return length >= minLength && length <= maxLength && masks.every((mask) => mask.test(text));
  };
}

/** Every text of up to `most` of these characters, and some longer ones. */
function textsOf(characters: string, most: number): string[] {
  let level = [""];
  const texts = [""];
  for (let length = 1; length <= most; length++) {
    level = level.flatMap((text) => Array.from(characters, (character) => text + character));
    texts.push(...level);
  }
  return texts;
}

test.each([
  ["a(?=b)", "abc", 5],
  ["^a(?!b)", "abc", 5],
  ["a(?!b)c?$", "abc", 5],
  ["(?<=a)b", "abc", 5],
  ["^(?<!a)b|(?<!a)c$", "abc", 5],
  ["(?<=^|a)b(?=$|c)", "abc", 5],
  ["\\ba\\b", "ab -", 5],
  ["\\Ba|a\\B", "ab -", 5],
  ["^(?:(?!-)[a-]{1,3}(?<!-)\\.)+[a]{2,3}$", "a-.", 7],
  ["^(?!-)(?:[a-]{0,2}[a]\\.)+a{2,}$", "a-.", 7],
  ["^a(?:b(?!$)|$){2}$", "abc", 5],
  ["^(?!.*ab)(?=.*c)[a-c]*$", "abc", 6],
  ["^(?=(?:a|b)*c$)(?!a).+", "abc", 5],
  ["(^|a)b(c|$)", "abc", 5],
  ["^(?:^a|b$)c?$", "abc", 4],
  ["(?=a)(?=.b)(?!..c)", "abc", 5],
  ["^(?!$)a?b?$", "abc", 4],
  ["a(?=b|$)[^c]?", "abc", 5],
  ["^a*(?<!a$)", "ab", 4],
  ["^(?<!$|b)a?$", "ab", 4],
  ["(?<!b$)(?<=a|^)b?", "ab", 4],
  ["^(?=[ab])(?:b{0}a)$", "ab", 4],
  ["^ab{0}(?<=[ab])$", "ab", 4],
  ["^[a-]{1,4}\\b[a-]*$", "a-", 6],
  ["^[a-]{1,4}\\B[a-]*$", "a-", 6],
  ["^(a|-b)\\b(-|c)*$", "abc-", 4],
  ["^\\b[a-]+\\b$|^\\B[b-]*$", "ab-", 5],
  ["[ab]-{0,2}\\b[ab]|\\b-\\b", "ab-", 5],
  ["^(?!.*\\bab\\b)[ab-]+$", "ab-", 6],
  ["^(?=\\b)(?!\\ba\\b).", "ab-", 4],
  ["^a?-?(?!b\\b)(?<!\\b-)b", "ab-", 5],
  ["^(?!.*\\b(?:a|bb)\\b)[ab-]*$", "ab-", 6],
  ["^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+D)?(T(?=\\d)(\\d+M)?(\\d+S)?)?)$", "PT1DWM", 6],
])("%s", (pattern, characters, most) => {
  const isLetThrough = maskOf({ pattern });
  const regex = new RegExp(pattern, "u");
  const wrong = textsOf(characters, most).filter((text) => isLetThrough(text) !== regex.test(text));
  expect(wrong).toEqual([]);
});

test("a word boundary leaves counts beside it as they are", () => {
  const url =
    "https?:\\/\\/(www\\.)?[-a-zA-Z0-9@:%._+~#=]{1,256}\\.[a-zA-Z0-9()]{1,6}\\b([-a-zA-Z0-9()@:%_+.~#?&//=]*)";
  const isLetThrough = maskOf({ pattern: url });
  const regex = new RegExp(url);
  const ends = ["", "a", ".b", "-", "/c?d=e", " f", ").", "(g"];
  const texts = ["http://a", "https://www.b.c", `http://${"a.".repeat(128)}`, "x http://-.d"];
  for (const text of texts.flatMap((start) => ends.map((end) => start + end)))
    expect(isLetThrough(text), text).toBe(regex.test(text));
});

test("many patterns that must not match are excluded together", () => {
  const words = ["and", "as", "assert", "break", "case", "class", "def", "del", "elif", "else"];
  const isLetThrough = maskOf({
    pattern: "^[a-z_]+$",
    allOf: [...words.map((word) => `^${word}$`), "^x_.*$"].map((pattern) => ({ not: { pattern } })),
  });
  for (const text of [...words, "x_", "x_y", "", "A"]) expect(isLetThrough(text), text).toBe(false);
  for (const text of ["a", "an", "ands", "asser", "asserts", "x", "xx_", "_"])
    expect(isLetThrough(text), text).toBe(true);
});

// Which JavaScript takes for the letters k and s where case is ignored.
test.each(["(?!k)", "(?<!s)a", "[^k]", "\\W", "[\\W]", "(?!\\w)", "(?![^s])", "k(?!s)"])(
  "(?i)^%s lets nothing through that JavaScript refuses",
  (rest) => {
    const regex = new RegExp(`^${rest}`, "iu");
    const texts = textsOf("ks\u017f\u212aa-", 3);
    const mask = maskOf({ pattern: `(?i)^${rest}` });
    const others = maskOf({ not: { pattern: `(?i)^${rest}` } });
    expect(texts.filter((text) => mask(text) && !regex.test(text))).toEqual([]);
    expect(texts.filter((text) => others(text) && regex.test(text))).toEqual([]);
    expect(texts.some((text) => mask(text) && !/[^\0-\x7f]/u.test(text))).toBe(true);
  },
);

test.each([
  [{ pattern: "^(?=.{2,4}$)[a-c]+(?:\\.[a-c]+)*$" }, "ab.", 6],
  [{ pattern: "^(?=.{2,4}\\.?$)(?=.*a)[a-c]{1,3}(?:\\.[ab]{0,2}){1,2}$" }, "ab.", 7],
  [{ pattern: "^[ab]{1,3}$", minLength: 2 }, "abc", 5],
  [{ pattern: "^[ab]+$", minLength: 2, maxLength: 4 }, "abc", 6],
  [{ pattern: "^[ab]+c$", minLength: 3, maxLength: 4 }, "abc", 6],
  [{ pattern: "^[ab]{2}c?$", minLength: 1, maxLength: 3 }, "abc", 5],
  [{ allOf: [{ pattern: "^.{1,3}$" }, { pattern: "b" }, { maxLength: 4 }] }, "ab\n", 5],
  [{ allOf: [{ pattern: "^[ab]*$" }, { pattern: "^[ab]{2,}$" }, { pattern: "a" }] }, "abc", 5],
])("%j: lengths and patterns", (schema, characters, most) => {
  const isLetThrough = maskOf(schema);
  const { allOf = [], ...own } = schema as Written;
  const all: Written[] = [own, ...allOf];
  const wrong = textsOf(characters, most).filter((text) => {
    const isValid = all.every(
      (each) =>
        (each.pattern === undefined || new RegExp(each.pattern, "u").test(text)) &&
        text.length >= (each.minLength ?? 0) &&
        text.length <= (each.maxLength ?? Infinity),
    );
    return isLetThrough(text) !== isValid;
  });
  expect(wrong).toEqual([]);
});

test("names of properties may be looked around in", () => {
  const { schema, issues } = compileSchema(
    {
      type: "object",
      patternProperties: { "^(?!x-).+$": { type: "integer" } },
      additionalProperties: false,
    },
    options,
  );
  expect(issues).toEqual([]);
  const [pattern] = Object.keys(schema!["patternProperties"] as object);
  const regex = new RegExp(pattern!.replaceAll("\\x{", "\\u{"), "u");
  expect(["a", "x", "x_", "ax-"].every((name) => regex.test(name))).toBe(true);
  expect(["x-", "x-a", ""].some((name) => regex.test(name))).toBe(false);
});

test("a look beside many optional characters does not make the expression too large", () => {
  const any = "a?b?c?d?".repeat(9);
  const isLetThrough = maskOf({ pattern: `^(?=a)(?:${any}z${any}(?<=d))$` });
  for (const text of ["azd", "abczcd", "aaazabcd"]) expect(isLetThrough(text), text).toBe(true);
  for (const text of ["bzd", "azc", "az", "zd", "ad"]) expect(isLetThrough(text), text).toBe(false);
});

test("a password may have more conditions than four", () => {
  const pattern = "^(?=.*[A-Z])(?=.*[a-z])(?=.*\\d)(?=.*[@$!%*?&])(?!.*\\s)[A-Za-z\\d@$!%*?&]{8,}$";
  const isLetThrough = maskOf({ pattern });
  expect(isLetThrough("Aa1@aaaa")).toBe(true);
  for (const text of ["Aa1@aaa", "aa1@aaaa", "AA1@AAAA", "Aab@aaaa", "Aa11aaaa", "Aa1@aaa a"])
    expect(isLetThrough(text), text).toBe(false);
});

test.each([
  ["(?!a(?=b))c", "looks around inside of what it looks at"],
  ["^(?=.*\\p{L})a|(?<=x)b", "excludes a Unicode property"],
  ["(?i)\\ba", "ignores the case of characters beyond ASCII"],
])("%s is left to the validation", (pattern, reason) => {
  const { issues } = compileSchema({ type: "string", pattern }, options);
  expect(issues).toEqual([expect.objectContaining({ reason: `has a pattern that ${reason}` })]);
});
