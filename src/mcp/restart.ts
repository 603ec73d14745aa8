/**
 * When a server that fails is started again. Pauses double; after several failures with nothing good
 * between them the breaker opens: the server is out of order and only tried now and then.
 *
 *   closed --failure--> closed, longer pause --failures--> open --failure--> open
 *     ^------------------------- success ---------------------'
 */

interface RestartLimits {
  /** Before the first restart. */
  firstDelayMs: number;
  maxDelayMs: number;
  /** Failures in a row that open the breaker. */
  failuresToOpen: number;
  /** Between two tries while it is open. */
  openDelayMs: number;
}

export class RestartPolicy {
  readonly #limits: RestartLimits;
  #failures = 0;

  constructor(limits: RestartLimits) {
    this.#limits = limits;
  }

  get failures(): number {
    return this.#failures;
  }

  get isOpen(): boolean {
    return this.#failures >= this.#limits.failuresToOpen;
  }

  /** @returns milliseconds until it is to be started again */
  failed(): number {
    const { firstDelayMs, maxDelayMs, openDelayMs } = this.#limits;
    const delay = Math.min(firstDelayMs * 2 ** this.#failures, maxDelayMs);
    this.#failures += 1;
    return this.isOpen ? openDelayMs : delay;
  }

  /** It did its work: not that it started, which a server that dies at every call does too. */
  succeeded(): void {
    this.#failures = 0;
  }
}
