/**
 * The responses and runs that this process is at work on, each with its claim: a number that grows with each process that takes
 * it over. A write with an earlier claim changes nothing. An insert locks the row with the claim (FOR SHARE), so that who takes
 * over waits for what the database still does for a process that is gone, and reads it.
 */

/** The last events of what has ended may follow its end. */
const keptMs = 60_000;

export class Claims {
  readonly #byId = new Map<string, number>();

  /** What this process works on, also if others took it meanwhile. */
  get ids(): string[] {
    return [...this.#byId.keys()];
  }

  set(id: string, claim: number): void {
    this.#byId.set(id, claim);
  }

  /** 0: it is not this process's. */
  of(id: string): number {
    return this.#byId.get(id) ?? 0;
  }

  end(id: string): void {
    this.#byId.delete(id);
  }

  endSoon(id: string): void {
    const claim = this.of(id);
    setTimeout(() => {
      if (this.of(id) === claim) this.end(id);
    }, keptMs).unref();
  }
}
