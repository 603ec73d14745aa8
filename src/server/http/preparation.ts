/** What stands before a generation: its schemas and its grammar are compiled, and may be refused. */

export class Preparation {
  readonly #begun: Promise<void>[] = [];
  #running = 0;

  /** As `ChatRequest.onPrepare`. */
  readonly add = (work: Promise<unknown>): void => {
    this.#running += 1;
    const end = (): void => void (this.#running -= 1);
    this.#begun.push(work.then(end, end));
  };

  /**
   * Waits for `first`: `milliseconds`, and as much longer as is prepared, so that what is refused gets its HTTP status.
   * @throws the error of `first`, if it fails in that time
   */
  async settle(first: Promise<unknown>, milliseconds: number): Promise<void> {
    await settledWithin(first, milliseconds);
    if (this.#running === 0) return;
    await Promise.race([first, Promise.all(this.#begun)]);
    await settledWithin(first, milliseconds);
  }
}

/** Waits for `promise`, but not for long. @throws its error, if it fails in that time */
export async function settledWithin(
  promise: Promise<unknown>,
  milliseconds: number,
): Promise<void> {
  promise.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
