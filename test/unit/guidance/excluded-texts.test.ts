/** The expression for all texts but some: held against the texts themselves. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { writeAllBut } from "../../../src/guidance/schema/regex/write.ts";

const readBy = (written: string): RegExp =>
  new RegExp(`^(?:${written.replaceAll("\\x{", "\\u{")})$`, "u");

test("it matches every text but these", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "é"), maxLength: 4 });
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 5 }),
      fc.array(text),
      (excluded, others) => {
        const regex = readBy(writeAllBut(excluded));
        for (const one of [...excluded, ...others])
          expect(regex.test(one), one).toBe(!excluded.includes(one));
      },
    ),
    { numRuns: 300, seed: 3 },
  );
});

test("a long text is not nested as deep as it is long", () => {
  const long = "x".repeat(900);
  const written = writeAllBut([long]);
  let [depth, deepest] = [0, 0];
  for (const letter of written) {
    if (letter === "(") deepest = Math.max(deepest, ++depth);
    if (letter === ")") depth--;
  }
  expect(deepest).toBeLessThan(40);
  const regex = readBy(written);
  for (const other of ["", "x", long.slice(1), `${long}x`, `${long.slice(1)}y`, `y${long}`])
    expect(regex.test(other)).toBe(true);
  expect(regex.test(long)).toBe(false);
});
