/** Work that waits for the work before it: of the few threads on which prompts are tokenized it keeps one. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** @throws what `work` does */
  take<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => {});
    return result;
  }
}
