import type { Simulation } from "./simulation.mjs";

export interface Others {
  chunk: number;
  decode: number;
}

export function slowdownBeside(known: readonly (readonly number[])[], others: Others): number;
export class Host {
  constructor(simulation: Simulation);
  readonly computing: number;
  compute(
    step: { milliseconds: number; kind: keyof Others; slowdown: (others: Others) => number },
    done: (took: number) => void,
  ): void;
}
