/** Numbers that follow from a seed: mulberry32, and the distributions of a load. */
export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to 1, never 1. */
  fraction() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  exponential(mean) {
    return -mean * Math.log(1 - this.fraction());
  }

  normal() {
    return Math.sqrt(-2 * Math.log(1 - this.fraction())) * Math.cos(2 * Math.PI * this.fraction());
  }

  /** @param spread of the logarithm */
  logNormal(median, spread) {
    return median * Math.exp(spread * this.normal());
  }

  /** A tail of the power `shape`: the median is least * 2 ** (1 / shape). */
  pareto(least, shape) {
    return least * (1 - this.fraction()) ** (-1 / shape);
  }

  /** 0 to count - 1, number k with a weight of 1 / (k + 1) ** power. */
  zipf(count, power) {
    const weights = Array.from({ length: count }, (_, rank) => (rank + 1) ** -power);
    let left = this.fraction() * weights.reduce((sum, weight) => sum + weight, 0);
    for (const [rank, weight] of weights.entries()) {
      left -= weight;
      if (left < 0) return rank;
    }
    return count - 1;
  }
}
