/**
 * Requests of many clients before the engine's queue, which is first come, first served. Of each client only a few stand
 * there; the others wait here until one of these has started. So a hundred requests of one client do not keep another's
 * one waiting.
 */

/** Enough that no place stays empty while the next one comes from here. */
const mostEntered = 8;

interface ClientsRequests<Item> {
  /** In the engine's queue. */
  readonly entered: Set<Item>;
  /** The oldest first. */
  readonly waiting: Set<Item>;
}

export class FairQueue<Item> {
  readonly #enter: (item: Item) => void;
  readonly #clients = new Map<string, ClientsRequests<Item>>();
  readonly #clientOf = new Map<Item, string>();

  /** @param enter puts a request that waited into the engine's queue; does not throw */
  constructor(enter: (item: Item) => void) {
    this.#enter = enter;
  }

  /** Requests that wait here. */
  get size(): number {
    let size = 0;
    for (const { waiting } of this.#clients.values()) size += waiting.size;
    return size;
  }

  /** Requests in the engine's queue. */
  get enteredCount(): number {
    let count = 0;
    for (const { entered } of this.#clients.values()) count += entered.size;
    return count;
  }

  /** @returns true: it may enter the engine's queue now; false: `enter` gets it later */
  add(client: string, item: Item): boolean {
    const requests = this.#clients.get(client) ?? { entered: new Set(), waiting: new Set() };
    const mayEnter = requests.entered.size < mostEntered;
    (mayEnter ? requests.entered : requests.waiting).add(item);
    this.#clients.set(client, requests);
    this.#clientOf.set(item, client);
    return mayEnter;
  }

  /**
   * More than `most` requests are in both queues, and the client has more than an equal share of these places. So one
   * client's requests leave no other's without a place.
   */
  isOver(client: string, most: number): boolean {
    if (this.size + this.enteredCount <= most) return false;
    const requests = this.#clients.get(client);
    const count = requests === undefined ? 0 : requests.entered.size + requests.waiting.size;
    return count > most / this.#clients.size;
  }

  /** Nothing enters any more. @returns those that waited here */
  clear(): Item[] {
    const all = [...this.#clients.values()].flatMap(({ waiting }) => [...waiting]);
    this.#clients.clear();
    this.#clientOf.clear();
    return all;
  }

  /** It has started, or will not. Others may enter for it. */
  remove(item: Item): void {
    const client = this.#clientOf.get(item);
    if (client === undefined) return;
    this.#clientOf.delete(item);
    const { entered, waiting } = this.#clients.get(client)!;
    waiting.delete(item);
    if (entered.delete(item)) {
      const [next] = waiting;
      if (next !== undefined) {
        waiting.delete(next);
        entered.add(next);
        this.#enter(next);
      }
    }
    if (entered.size === 0 && waiting.size === 0) this.#clients.delete(client);
  }
}
