/** How often a fault is injected: a few times in every run, and often with FERMATA_FAULTS=long. */
export function times(short: number, long: number): number {
  return process.env["FERMATA_FAULTS"] === "long" ? long : short;
}

/** Prints how often a fault was injected, for the table of docs/reliability.md. */
export function told(fault: string, count: number): void {
  console.info(`injected: ${fault}: ${count}`);
}
