/** Work that is done one after the other, whether the work before it has failed or not. */

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** @throws what `work` does */
  take<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}

/** Turns for each of many things; what is about different ones goes on side by side. */
export class TurnsOfEach {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Work about it goes on or waits. */
  has(thing: string): boolean {
    return this.#last.has(thing);
  }

  /** @throws what `work` does */
  async take<Result>(thing: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(thing) ?? Promise.resolve();
    const result = before.then(work);
    const settled = result.catch(() => {});
    this.#last.set(thing, settled);
    try {
      return await result;
    } finally {
      if (this.#last.get(thing) === settled) this.#last.delete(thing);
    }
  }
}
