import { expect, test } from "vitest";
import { RestartPolicy } from "../../../src/mcp/restart.ts";

test("pauses double; the breaker opens after failures in a row and closes with work done", () => {
  const policy = new RestartPolicy({
    firstDelayMs: 100,
    maxDelayMs: 350,
    failuresToOpen: 4,
    openDelayMs: 9000,
  });
  const delays = Array.from({ length: 3 }, () => policy.failed());
  expect(delays).toEqual([100, 200, 350]);
  expect(policy.isOpen).toBe(false);
  expect(policy.failed()).toBe(9000);
  expect(policy.isOpen).toBe(true);
  expect(policy.failed()).toBe(9000);
  policy.succeeded();
  expect([policy.isOpen, policy.failed()]).toEqual([false, 100]);
});
