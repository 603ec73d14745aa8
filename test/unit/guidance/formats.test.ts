import fc from "fast-check";
import { expect, test } from "vitest";
import { compileValidator } from "../../../src/guidance/validator.ts";
import { formatOf } from "../../../src/guidance/schema/decide/formats.ts";

function maskOf(name: string): RegExp {
  const format = formatOf(name);
  if (typeof format === "string" || format.pattern === undefined) throw new Error(name);
  return new RegExp(`^(?:${format.pattern})$`, "u");
}

test("uri: with an authority and without", () => {
  const mask = maskOf("uri");
  for (const text of [
    "https://example.com/a/b?c=d#e",
    "http://user:word@example.com:8080",
    "file:///etc/hosts",
    "mailto:ann@example.com?subject=hi",
    "urn:isbn:0451450523",
    "tel:+1-816-555-1212",
    "data:text/plain;base64,SGk=",
  ])
    expect(mask.test(text), text).toBe(true);
  for (const text of ["example.com", "//example.com", "mailto:", "urn:a b", "1a:b", "a:%zz"])
    expect(mask.test(text), text).toBe(false);
});

test.each(["uri", "email", "hostname", "ipv4", "uuid", "date", "time", "date-time"])(
  "%s: the mask is no wider than the validator",
  (name) => {
    const format = formatOf(name);
    if (typeof format === "string") throw new Error(name);
    const validate = compileValidator({ type: "string", format: name });
    const texts = fc.stringMatching(new RegExp(`^(?:${format.pattern})$`));
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(text.length <= (format.maxLength ?? Infinity));
        expect(validate(text)).toBeNull();
      }),
      { numRuns: 300, seed: 16 },
    );
  },
);
