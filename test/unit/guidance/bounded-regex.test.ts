import { expect, test } from "vitest";
import { readsPattern } from "../../../src/guidance/bounded-regex.ts";
import { asJavaScript } from "../../../src/guidance/schema/regex/dialect.ts";

test("a class without an end is passed over whole, not read again from each bracket in it", () => {
  for (const source of ["[(?P<a>x)", "[[(?P<a>x)\\"])
    expect(asJavaScript(source).source).toBe(source);
  expect(asJavaScript("[(?P<](?P<a>x)").source).toBe("[(?P<](?<a>x)");
});

test("a pattern that is too long to be read means nothing", () => {
  expect(readsPattern("a".repeat(32_000))).toBe(true);
  expect(readsPattern("a".repeat(33_000))).toBe(false);
});
