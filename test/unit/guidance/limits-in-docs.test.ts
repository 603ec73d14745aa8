/** The limits that docs/guided-decoding.md names: what is at one is enforced, what is beyond is not. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FermataError } from "../../../src/errors.ts";
import { compileSchema } from "../../../src/guidance/schema/compile.ts";

const guide = readFileSync(
  join(import.meta.dirname, "../../../docs/guided-decoding.md"),
  "utf8",
).replaceAll(/\s+/gu, " ");

const list = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));
const optional = (count: number) => ({
  type: "object",
  properties: Object.fromEntries(list(count, (index) => [`p${index}`, { type: "string" }])),
});
const patterns = (...given: string[]) => ({
  type: "string",
  allOf: given.map((pattern) => ({ pattern })),
});
const union = (count: number, name = "t") => ({
  anyOf: list(count, (index) => ({
    type: "object",
    properties: { [name]: { const: `${name}${index}` } },
    required: [name],
  })),
});
const nested = (levels: number): unknown =>
  levels === 0 ? true : { type: "array", items: nested(levels - 1) };

/** Its keywords that are not enforced, or why it is refused. */
function verdict(schema: unknown): string[] | string {
  try {
    const { issues } = compileSchema(schema, { closed: false, objectOnly: false });
    return [...new Set(issues.map(({ keyword }) => keyword))];
  } catch (error) {
    if (error instanceof FermataError) return error.code;
    throw error;
  }
}

test.each<[string, unknown, unknown, string[] | string]>([
  ["more than 490 optional properties in a row", optional(490), optional(491), ["properties"]],
  [
    "a pattern of more than 2,000 characters",
    { type: "string", pattern: `^${"a".repeat(1998)}$` },
    { type: "string", pattern: `^${"a".repeat(1999)}$` },
    ["pattern"],
  ],
  [
    "counts that add up to more than 1,000",
    { type: "string", pattern: "^a{500}b{500}$" },
    { type: "string", pattern: "^a{501}b{500}$" },
    ["pattern"],
  ],
  [
    "(10,000 for a single count)",
    { type: "string", pattern: "^a{10000}$" },
    { type: "string", pattern: "^a{10001}$" },
    ["pattern"],
  ],
  [
    "more than four patterns for one text",
    patterns("ab", "ac", "ad", "ae"),
    patterns("ab", "ac", "ad", "ae", "af"),
    ["pattern"],
  ],
  [
    "counts that may begin anywhere and add up to more than 8",
    patterns("a{2,4}", "b{2,4}"),
    patterns("a{2,5}", "b{2,4}"),
    ["pattern"],
  ],
  [
    "a `minLength` or `maxLength` above 40,000",
    { type: "string", minLength: 40_000, maxLength: 40_000 },
    { type: "string", minLength: 40_001, maxLength: 40_001 },
    ["minLength", "maxLength"],
  ],
  ["a union of more than 2,000 members", union(2000), union(2001), ["anyOf"]],
  [
    "more than 200 combinations where unions meet",
    { allOf: [union(14, "a"), union(14, "b")] },
    { allOf: [union(15, "a"), union(14, "b")] },
    ["anyOf"],
  ],
  [
    "200,000 values",
    { enum: list(199_990, (index) => index) },
    { enum: list(200_000, (index) => index) },
    "schema_too_large",
  ],
  ["100 levels", nested(99), nested(101), "schema_too_large"],
  [
    "2 MiB of text",
    { description: "x".repeat(2 * 1024 * 1024 - 100) },
    { description: "x".repeat(2 * 1024 * 1024 + 1) },
    "schema_too_large",
  ],
])("%s", (told, most, beyond, expected) => {
  expect(guide).toContain(told);
  expect(verdict(most)).toEqual([]);
  expect(verdict(beyond)).toEqual(expected);
});
