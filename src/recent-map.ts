/** A map that keeps so many entries: those that were set last, in that order. */
export class RecentMap<Key, Value> extends Map<Key, Value> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    for (const first of this.keys()) {
      if (this.size <= this.#most) break;
      this.delete(first);
    }
    return this;
  }
}
