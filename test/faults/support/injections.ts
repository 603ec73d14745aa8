import { expect } from "vitest";
import { faultTable } from "../../support/fault-table.ts";

/** How often a fault is injected: a few times in every run, and often with FERMATA_FAULTS=long. */
export function times(short: number, long: number): number {
  return process.env["FERMATA_FAULTS"] === "long" ? long : short;
}

/**
 * Prints how often a fault was injected. The table of docs/reliability.md promises no more.
 * @param fault how its row begins
 * @param tests that share the row, each with as many
 */
export function told(fault: string, count: number, tests = 1): void {
  console.info(`injected: ${fault}: ${count}`);
  const rows = faultTable.filter((row) => row.fault.startsWith(fault));
  expect(rows, `rows of docs/reliability.md that begin with "${fault}"`).toHaveLength(1);
  expect(count * tests, fault).toBeGreaterThanOrEqual(rows[0]!.injected);
}
