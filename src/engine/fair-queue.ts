/**
 * Requests of many owners before the engine's queue, which is first come, first served. Of each owner only a few stand
 * there; the others wait here until one of these has started. So a hundred requests of one owner do not keep another's
 * one waiting.
 */

/** Enough that no place stays empty while the next one comes from here. */
const mostEntered = 8;

interface OwnersRequests<Item> {
  /** In the engine's queue. */
  readonly entered: Set<Item>;
  /** The oldest first. */
  readonly waiting: Set<Item>;
}

export class FairQueue<Item> {
  readonly #enter: (item: Item) => void;
  readonly #owners = new Map<string, OwnersRequests<Item>>();
  readonly #ownerOf = new Map<Item, string>();

  /** @param enter puts a request that waited into the engine's queue; does not throw */
  constructor(enter: (item: Item) => void) {
    this.#enter = enter;
  }

  /** Requests that wait here. */
  get size(): number {
    let size = 0;
    for (const { waiting } of this.#owners.values()) size += waiting.size;
    return size;
  }

  /** Requests in the engine's queue. */
  get enteredCount(): number {
    let count = 0;
    for (const { entered } of this.#owners.values()) count += entered.size;
    return count;
  }

  /** @returns true: it may enter the engine's queue now; false: `enter` gets it later */
  add(owner: string, item: Item): boolean {
    const requests = this.#owners.get(owner) ?? { entered: new Set(), waiting: new Set() };
    const mayEnter = requests.entered.size < mostEntered;
    (mayEnter ? requests.entered : requests.waiting).add(item);
    this.#owners.set(owner, requests);
    this.#ownerOf.set(item, owner);
    return mayEnter;
  }

  /** Nothing enters any more. @returns those that waited here */
  clear(): Item[] {
    const all = [...this.#owners.values()].flatMap(({ waiting }) => [...waiting]);
    this.#owners.clear();
    this.#ownerOf.clear();
    return all;
  }

  /** It has started, or will not. Others may enter for it. */
  remove(item: Item): void {
    const owner = this.#ownerOf.get(item);
    if (owner === undefined) return;
    this.#ownerOf.delete(item);
    const { entered, waiting } = this.#owners.get(owner)!;
    waiting.delete(item);
    if (entered.delete(item)) {
      const [next] = waiting;
      if (next !== undefined) {
        waiting.delete(next);
        entered.add(next);
        this.#enter(next);
      }
    }
    if (entered.size === 0 && waiting.size === 0) this.#owners.delete(owner);
  }
}
