import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ClockWatch } from "../../../src/store/clock-watch.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance"] }));
afterEach(() => void vi.useRealTimers());

const minute = 60_000;

test.each([
  [59, true],
  [-59, true],
  [61, false],
  [-61, false],
])("a jump of %d minutes is believed: %s", (minutes, isBelieved) => {
  const watch = new ClockWatch();
  vi.setSystemTime(Date.now() + minutes * minute);
  expect(watch.isBelieved).toBe(isBelieved);
});

test("a large jump is believed once it has stayed for a day, and at once if it is undone", () => {
  const watch = new ClockWatch();
  const jump = 48 * 60 * minute;
  vi.setSystemTime(Date.now() + jump);
  expect(watch.isBelieved).toBe(false);
  vi.setSystemTime(Date.now() - jump);
  expect(watch.isBelieved).toBe(true);
  vi.setSystemTime(Date.now() + jump);
  expect(watch.isBelieved).toBe(false);
  vi.advanceTimersByTime(24 * 60 * minute - 1);
  expect(watch.isBelieved).toBe(false);
  vi.advanceTimersByTime(1);
  expect(watch.isBelieved).toBe(true);
});
