/** Runs work one after the other, so that it uses at most one of the few tokenizer threads. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** @throws what `work` does */
  take<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => {});
    return result;
  }
}
