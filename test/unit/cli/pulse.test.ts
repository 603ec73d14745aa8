// When a worker counts as hanging. The clock is a fake: time is what the supervisor's own ticks say.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Hang, Pulse, pulseMs } from "../../../src/cli/supervisor/pulse.ts";

let hangs: Hang[];
let pulse: Pulse;
beforeEach(() => {
  vi.useFakeTimers();
  hangs = [];
  pulse = new Pulse({ loop: 10, step: 20 }, (hang) => hangs.push(hang));
});
afterEach(() => {
  pulse.stop();
  vi.useRealTimers();
});

/** Seconds with a heartbeat each. */
function beat(ages: readonly number[]): void {
  for (const age of ages) {
    vi.advanceTimersByTime(pulseMs);
    pulse.beat(age);
  }
}
const seconds = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => (from + index) * 1000);

test("a worker without a heartbeat hangs, once", () => {
  beat([0, 0, 0]);
  vi.advanceTimersByTime(12 * pulseMs);
  expect(hangs).toEqual([]);
  vi.advanceTimersByTime(100 * pulseMs);
  expect(hangs).toEqual([{ thread: "javascript", seconds: 10 }]);
});

test("one that is late again and again does not", () => {
  for (let count = 0; count < 20; count++) {
    vi.advanceTimersByTime(9 * pulseMs);
    pulse.beat(0);
  }
  expect(hangs).toEqual([]);
});

test("a step that goes on hangs; many steps that are shorter do not", () => {
  for (let count = 0; count < 5; count++) beat(seconds(1, 19));
  expect(hangs).toEqual([]);
  beat(seconds(1, 60));
  expect(hangs).toEqual([{ thread: "inference", seconds: 20 }]);
});

test("an age that jumps, as after a machine's sleep, is not a hang", () => {
  beat([0, 500, 8 * 3600 * 1000]);
  expect(hangs).toEqual([]);
  beat([0, ...seconds(1, 19)]);
  expect(hangs).toEqual([]);
});
