/** Work that is done one after the other, whether the work before it has failed or not. */

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** @throws what `work` does */
  take<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => {});
    return result;
  }
}
