import { afterEach, expect, test, vi } from "vitest";
import { onSignals } from "../../../src/cli/signals.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("the same signal at once is npm's copy; later it is another, and another signal is one at once", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const handled: string[] = [];
  const off = onSignals(["SIGUSR2", "SIGWINCH"], (signal) => handled.push(signal));
  process.emit("SIGUSR2", "SIGUSR2");
  vi.advanceTimersByTime(400);
  process.emit("SIGUSR2", "SIGUSR2");
  expect(handled).toEqual(["SIGUSR2"]);
  process.emit("SIGWINCH", "SIGWINCH");
  vi.advanceTimersByTime(200);
  process.emit("SIGUSR2", "SIGUSR2");
  expect(handled).toEqual(["SIGUSR2", "SIGWINCH", "SIGUSR2"]);
  off();
  expect(process.listenerCount("SIGUSR2")).toBe(0);
});
