import type { Simulation } from "./simulation.mjs";

export function slowdownOf(known: readonly number[], computing: number): number;
export class Host {
  constructor(simulation: Simulation);
  readonly computing: number;
  compute(milliseconds: number, slowdowns: readonly number[], done: (took: number) => void): void;
}
