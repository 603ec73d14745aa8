import { expect, test } from "vitest";
import { Host, slowdownBeside } from "../../../scripts/simulate/model/host.mjs";
import type { Others } from "../../../scripts/simulate/model/host.mjs";
import { Simulation } from "../../../scripts/simulate/model/simulation.mjs";

test("events happen in the order of their times, equal ones in the order in which they were added", () => {
  const simulation = new Simulation();
  const seen: string[] = [];
  const times = [5, 1, 3, 1, 4, 2, 5, 0, 3];
  for (const [index, time] of times.entries())
    simulation.after(time, () => seen.push(`${time}:${index}`));
  simulation.after(2.5, () => simulation.after(1, () => seen.push("3.5")));
  simulation.run();
  expect(seen.join(" ")).toBe("0:7 1:1 1:3 2:5 3:2 3:8 3.5 4:4 5:0 5:6");
  expect(simulation.now).toBe(5);
});

test("nothing happens after the end", () => {
  const simulation = new Simulation();
  let happened = 0;
  simulation.after(10, () => (happened += 1));
  simulation.after(10.5, () => (happened += 1));
  simulation.run(10);
  expect(happened).toBe(1);
});

// One computes chunks for 100 ms. After 40 of them a second one comes, which decodes for 30: the first goes at a quarter of
// its speed, the second at half, until that is done at 40 + 60 = 100, when the first has 45 left. At 110 a third comes,
// with chunks of 10: both go at a third, until it is done at 140, and the first has 25 left.
test("replicas that compute at the same time on one host slow each other down, by what each computes", () => {
  const simulation = new Simulation();
  const host = new Host(simulation);
  const ended: string[] = [];
  const compute = (name: string, milliseconds: number, kind: keyof Others): void => {
    const known = { chunk: [[1, 4], [3]], decode: [[1, 1.5], [2]] }[kind];
    const step = {
      milliseconds,
      kind,
      slowdown: (others: Others) => slowdownBeside(known, others),
    };
    host.compute(step, (took) => ended.push(`${name} at ${simulation.now} after ${took}`));
  };
  compute("first", 100, "chunk");
  simulation.after(40, () => compute("second", 30, "decode"));
  simulation.after(110, () => compute("third", 10, "chunk"));
  simulation.run();
  expect(ended).toEqual([
    "second at 100 after 60",
    "third at 140 after 30",
    "first at 165 after 165",
  ]);
});

test("beside more replicas than were measured, a step slows down in proportion", () => {
  const known = [[1, 1.2, 1.8], [2, 2.6], [3]];
  const of = (chunk: number, decode: number): number => slowdownBeside(known, { chunk, decode });
  expect([of(0, 0), of(0, 2), of(1, 0), of(1, 1), of(2, 0)]).toEqual([1, 1.8, 2, 2.6, 3]);
  expect(of(5, 0)).toBeCloseTo(3 * 2);
  expect(of(0, 5)).toBeCloseTo(1.8 * 2);
  expect(of(2, 3)).toBeCloseTo(2.6 * 2);
});
