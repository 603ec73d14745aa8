import { vi } from "vitest";

/**
 * Waits until `check` no longer throws; gives what it gives. The limit is there to name what never came:
 * it is so long that a machine that is slow or busy keeps it, and nothing is said about time by it.
 */
export function eventually<Result>(check: () => Result | Promise<Result>): Promise<Result> {
  return vi.waitFor(check, { timeout: 30_000, interval: 5 });
}
