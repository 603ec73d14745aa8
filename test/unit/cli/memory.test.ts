import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { GivesMemoryBack } from "../../../src/cli/memory.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("memory goes back once a minute, never twice at a time, and not after the end", async () => {
  let calls = 0;
  let done = (): void => {};
  const giveBackMemory = (): Promise<void> => {
    calls += 1;
    return new Promise((resolve) => (done = resolve));
  };
  const part = new GivesMemoryBack({ giveBackMemory });
  await vi.advanceTimersByTimeAsync(59_000);
  expect(calls).toBe(0);
  await vi.advanceTimersByTimeAsync(1000);
  expect(calls).toBe(1);
  // The pool is busy.
  await vi.advanceTimersByTimeAsync(180_000);
  expect(calls).toBe(1);
  done();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls).toBe(2);
  done();
  await part.close();
  await vi.advanceTimersByTimeAsync(180_000);
  expect(calls).toBe(2);
});
