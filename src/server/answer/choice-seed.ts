import { randomInt } from "node:crypto";
import type { Sampling } from "../../engine/types.ts";

/** The first choice draws with the request's seed, each other with one of its own that follows from it. */
export function withSeed(sampling: Sampling, choice: number): Sampling {
  return { ...sampling, seed: (sampling.seed + choice) % 2 ** 32 };
}

export function drawSeed(): number {
  return randomInt(2 ** 32);
}
