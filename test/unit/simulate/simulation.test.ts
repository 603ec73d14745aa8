import { expect, test } from "vitest";
import { Host } from "../../../scripts/simulate/model/host.mjs";
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

// One computes 100 ms. After 40 of them a second one comes, which takes 30: both go at half the speed until the second
// one is done at 40 + 60 = 100, when the first one has 30 left.
test("replicas that compute at the same time on one host slow each other down", () => {
  const simulation = new Simulation();
  const host = new Host(simulation);
  const ended: string[] = [];
  const compute = (name: string, ms: number): void =>
    host.compute(ms, [1, 2], (took) => ended.push(`${name} at ${simulation.now} after ${took}`));
  compute("first", 100);
  simulation.after(40, () => compute("second", 30));
  simulation.run();
  expect(ended).toEqual(["second at 100 after 60", "first at 130 after 130"]);
});
