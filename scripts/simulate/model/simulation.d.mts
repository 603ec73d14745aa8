export class Simulation {
  now: number;
  after(milliseconds: number, happens: () => void): void;
  run(end?: number): void;
}
