// What docs/reliability.md says of faults. How often each is injected, its test in test/faults compares itself.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { faultTable } from "../support/fault-table.ts";

test("at least 20 faults, and 2,000 of them in every run", () => {
  expect(faultTable.length).toBeGreaterThanOrEqual(20);
  const sum = faultTable.reduce((total, { injected }) => total + injected, 0);
  expect(sum).toBeGreaterThanOrEqual(2000);
});

test.each(faultTable)("$fault: has a figure, a promise, and its tests are there", (row) => {
  expect(row.injected).toBeGreaterThan(0);
  expect(row.promise).not.toBe("");
  expect(row.lost).not.toBe("");
  for (const [, path = ""] of row.fault.matchAll(/`(test\/[^`]+)`/g))
    expect(existsSync(join(import.meta.dirname, "../..", path)), path).toBe(true);
});
