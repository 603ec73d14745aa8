/** Tokens of a run, shared with the runs below it: what is reserved for one of them, no other gets. */

/** Less is not worth a sub-agent. */
const minimumShare = 16;

export class TokenBudget {
  readonly limit: number;
  readonly #parent: TokenBudget | null;
  /** By the run itself. */
  #own = 0;
  /** By runs below that have ended. */
  #below = 0;
  #reserved = 0;

  constructor(limit = Infinity, parent: TokenBudget | null = null) {
    this.limit = limit;
    this.#parent = parent;
  }

  get spent(): number {
    return this.#own + this.#below;
  }

  /** For the run itself, and for the next run below it. Infinity: there is no limit. */
  get left(): number {
    return Math.max(0, this.limit - this.spent - this.#reserved);
  }

  /** @param tokens that the run itself has generated so far, all rounds */
  setOwn(tokens: number): void {
    this.#own = tokens;
  }

  /**
   * A run below gets its own limit, but no more than half of what is left: whoever delegates has to answer
   * yet. Null: too little is left. Give it back with `close`.
   */
  reserve(limit = Infinity): TokenBudget | null {
    const share = Math.min(limit, Math.floor(this.left / 2));
    if (share < Math.min(limit, minimumShare)) return null;
    if (share !== Infinity) this.#reserved += share;
    return new TokenBudget(share, this);
  }

  /** The run has ended. To be called once. */
  close(): void {
    if (this.#parent === null) return;
    if (this.limit !== Infinity) this.#parent.#reserved -= this.limit;
    this.#parent.#below += this.spent;
  }
}
