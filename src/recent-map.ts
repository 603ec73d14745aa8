/** A map with room for so much: those entries that were set last, in that order. */
export class RecentMap<Key, Value> extends Map<Key, Value> {
  readonly #room: number;
  readonly #sizeOf: (value: Value, key: Key) => number;
  readonly #sizes = new Map<Key, number>();
  #taken = 0;

  /** @param sizeOf of an entry as it is when it is set; 0: it stays until it is set again. Default: 1 */
  constructor(room: number, sizeOf: (value: Value, key: Key) => number = () => 1) {
    super();
    this.#room = room;
    this.#sizeOf = sizeOf;
  }

  /** What is larger than all the room is not kept. */
  override set(key: Key, value: Value): this {
    this.delete(key);
    const size = this.#sizeOf(value, key);
    if (size > this.#room) return this;
    super.set(key, value);
    this.#sizes.set(key, size);
    this.#taken += size;
    for (const [first, its] of this.#sizes) {
      if (this.#taken <= this.#room) break;
      if (its > 0) this.delete(first);
    }
    return this;
  }

  override delete(key: Key): boolean {
    this.#taken -= this.#sizes.get(key) ?? 0;
    this.#sizes.delete(key);
    return super.delete(key);
  }
}
