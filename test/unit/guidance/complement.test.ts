/** What a pattern must not begin with: held against JavaScript's own reading, for small expressions and all short texts. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { RegexError, parseRegex } from "../../../src/guidance/schema/regex/parse.ts";
import { complementOf } from "../../../src/guidance/schema/regex/complement.ts";
import { regionsOf } from "../../../src/guidance/schema/regex/difference.ts";
import { uncounted } from "../../../src/guidance/schema/steps.ts";
import { writeWhole } from "../../../src/guidance/schema/regex/write.ts";

const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom("a", "b", "[ab]", "[^a]", ".", "^", "$", ""),
    fc.tuple(tie("expression"), tie("expression")).map(([one, other]) => `${one}${other}`),
    fc.tuple(tie("expression"), tie("expression")).map(([one, other]) => `(?:${one}|${other})`),
    fc
      .tuple(tie("expression"), fc.constantFrom("*", "+", "?", "{2}"))
      .map(([body, times]) => `(?:${body})${times}`),
  ),
}));

const texts = [""];
for (const text of texts) if (text.length < 5) texts.push(`${text}a`, `${text}b`, `${text}\n`);

const nothing = "[^\\s\\S]";

/** @param written in the mask engine's syntax */
function asWhole(written: string): RegExp {
  return new RegExp(`^(?:${written.replaceAll("\\x{", "\\u{")})$`, "u");
}

test("the complement matches what the expression does not", () => {
  let held = 0;
  fc.assert(
    fc.property(expression, (source) => {
      let written: string;
      try {
        const complement = complementOf(parseRegex(source), uncounted);
        written = complement === null ? nothing : writeWhole(complement);
      } catch (error) {
        // Too large.
        expect(error).toBeInstanceOf(RegexError);
        return;
      }
      held += 1;
      const complement = asWhole(written);
      const original = new RegExp(source, "u");
      for (const text of texts) expect(complement.test(text), text).toBe(!original.test(text));
    }),
    { numRuns: 400, seed: 5 },
  );
  expect(held).toBeGreaterThan(150);
});

test("a list with its first item apart matches what it did", () => {
  const times = fc.constantFrom("*", "+", "?", "{2}", "{1,3}", "{0}");
  fc.assert(
    fc.property(expression, expression, times, fc.boolean(), (item, between, count, isLonger) => {
      const source = `^(?:(?:${item})${between})${count}(?:${item})${isLonger ? between : ""}$`;
      let list: RegExp;
      try {
        list = asWhole(writeWhole(parseRegex(source)));
      } catch (error) {
        // An anchor in its middle.
        expect(error).toBeInstanceOf(RegexError);
        return;
      }
      const original = new RegExp(source, "u");
      for (const text of texts) expect(list.test(text), text).toBe(original.test(text));
    }),
    { numRuns: 400, seed: 5 },
  );
});

test("what is left of an expression without some texts matches the others", () => {
  const some = fc.subarray(texts.slice(0, 40), { minLength: 1, maxLength: 8 });
  let held = 0;
  fc.assert(
    fc.property(expression, some, (source, left) => {
      let written: string;
      try {
        const [others] = regionsOf([parseRegex(source)], left, uncounted);
        written = others === undefined ? nothing : writeWhole(others.regex);
      } catch (error) {
        // Too large.
        expect(error).toBeInstanceOf(RegexError);
        return;
      }
      held += 1;
      const others = asWhole(written);
      const original = new RegExp(source, "u");
      for (const text of texts)
        expect(others.test(text), text).toBe(original.test(text) && !left.includes(text));
    }),
    { numRuns: 400, seed: 5 },
  );
  expect(held).toBeGreaterThan(350);
});

test("of several expressions, each combination matches what just these match", () => {
  const some = fc.array(expression, { minLength: 2, maxLength: 3 });
  let held = 0;
  fc.assert(
    fc.property(some, fc.subarray(texts.slice(0, 40), { maxLength: 3 }), (sources, left) => {
      const originals = sources.map((source) => new RegExp(source, "u"));
      let regions: { whole: RegExp; matched: readonly boolean[] }[];
      try {
        regions = regionsOf(sources.map(parseRegex), left, uncounted).map(({ regex, matched }) => ({
          whole: asWhole(writeWhole(regex)),
          matched,
        }));
      } catch (error) {
        // Too large.
        expect(error).toBeInstanceOf(RegexError);
        return;
      }
      held += 1;
      for (const text of texts) {
        const matched = originals.map((original) => original.test(text));
        const isOne = matched.includes(true) && !left.includes(text);
        const found = regions.filter(({ whole }) => whole.test(text));
        expect(
          found.map((region) => region.matched),
          text,
        ).toEqual(isOne ? [matched] : []);
      }
    }),
    { numRuns: 120, seed: 5 },
  );
  expect(held).toBeGreaterThan(80);
});
