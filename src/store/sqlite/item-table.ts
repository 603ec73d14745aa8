/** Items, each stored once. */

import { freshId, itemDigest } from "../item-identity.ts";
import { sql } from "../sql.ts";
import type { StoreDatabase } from "./database.ts";
import type { StoredItem } from "../types.ts";

interface ItemRow {
  key: number;
  digest: string;
}

/** Items that a history already uses. Equal content that occurs twice is two items. */
export class TakenItems {
  readonly #keys: Set<number>;
  /** By digest: up to this key, all items of that digest are taken. */
  readonly #upTo = new Map<string, number>();

  constructor(keys: Iterable<number> = []) {
    this.#keys = new Set(keys);
  }

  has(key: number): boolean {
    return this.#keys.has(key);
  }

  add(key: number): void {
    this.#keys.add(key);
  }

  upTo(digest: string): number {
    return this.#upTo.get(digest) ?? 0;
  }

  setUpTo(digest: string, key: number): void {
    this.#upTo.set(digest, key);
  }
}

const isOrphan = `NOT EXISTS (SELECT 1 FROM response_items WHERE item = items.key)
   AND NOT EXISTS (SELECT 1 FROM conversation_items WHERE item = items.key)`;

export class ItemTable {
  readonly #database: StoreDatabase;

  constructor(database: StoreDatabase) {
    this.#database = database;
  }

  /**
   * The key of what a client sent. Known: by its id, if it says the same; else by what it says, but
   * for one that is in `taken`, since a history may say the same twice. An id that stands for
   * something else gets out of its way.
   */
  refer(owner: string, item: StoredItem, taken: TakenItems): number {
    const digest = itemDigest(item);
    const sameId = this.#byId(owner, item.id);
    if (sameId?.digest === digest && !taken.has(sameId.key)) return sameId.key;
    const twin = this.#freeTwin(owner, digest, taken);
    if (twin !== null) return twin;
    const stored = sameId === undefined ? item : { ...item, id: freshId(item.id) };
    return this.#add(owner, stored, digest);
  }

  /** The first free item of the digest. Earlier ones are not checked again. */
  #freeTwin(owner: string, digest: string, taken: TakenItems): number | null {
    for (let after = taken.upTo(digest); ;) {
      const row = this.#database.get<{
        key: number;
      }>(
        sql`SELECT key FROM items WHERE owner = ${owner} AND digest = ${digest} AND key > ${after} ORDER BY key LIMIT 1`,
      );
      if (row === undefined) return null;
      if (!taken.has(row.key)) return row.key;
      after = row.key;
      taken.setUpTo(digest, after);
    }
  }

  /** The key of an item that this server wrote. A later version replaces it. */
  put(owner: string, item: StoredItem): number {
    const digest = itemDigest(item);
    const row = this.#byId(owner, item.id);
    if (row === undefined) return this.#add(owner, item, digest);
    this.#database.run(sql`UPDATE items SET digest = ${digest}, body = ${JSON.stringify(item)}
      WHERE key = ${row.key}`);
    return row.key;
  }

  /** Deletes the items that nothing uses any more: among `keys`, or among all items. */
  deleteOrphans(keys?: readonly number[]): void {
    if (keys === undefined) this.#database.run(`DELETE FROM items WHERE ${isOrphan}`);
    else
      for (const key of keys)
        this.#database.run(`DELETE FROM items WHERE key = ? AND ${isOrphan}`, key);
  }

  #byId(owner: string, id: string): ItemRow | undefined {
    return this.#database.get(
      sql`SELECT key, digest FROM items WHERE owner = ${owner} AND id = ${id}`,
    );
  }

  #add(owner: string, item: StoredItem, digest: string): number {
    const [key] = this.#database.column<number>(sql`INSERT INTO items (owner, id, digest, body)
      VALUES (${owner}, ${item.id}, ${digest}, ${JSON.stringify(item)}) RETURNING key`);
    return key!;
  }
}
