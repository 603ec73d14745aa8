import type { Simulation } from "./simulation.mjs";

export class Host {
  constructor(simulation: Simulation, slowdowns?: readonly number[]);
  compute(milliseconds: number, done: (took: number) => void): void;
  slowdown(computing: number): number;
  besides(): number;
}
