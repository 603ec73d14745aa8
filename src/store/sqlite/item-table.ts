/** Items, each stored once. */

import type { Database } from "libsql";
import { randomBytes } from "node:crypto";
import { itemDigest } from "../item-digest.ts";
import type { StoredItem } from "../types.ts";

interface ItemRow {
  key: number;
  id: string;
  digest: string;
}

export class ItemTable {
  readonly #byId;
  readonly #byDigest;
  readonly #insert;
  readonly #update;
  readonly #body;
  readonly #deleteOrphans;
  readonly #deleteOrphan;

  constructor(database: Database) {
    this.#byId = database.prepare("SELECT key, id, digest FROM items WHERE owner = ? AND id = ?");
    this.#byDigest = database.prepare(
      "SELECT key, id, digest FROM items WHERE owner = ? AND digest = ? ORDER BY key",
    );
    this.#insert = database.prepare(
      "INSERT INTO items (owner, id, digest, body) VALUES (?, ?, ?, ?)",
    );
    this.#update = database.prepare("UPDATE items SET digest = ?, body = ? WHERE key = ?");
    this.#body = database.prepare("SELECT body FROM items WHERE owner = ? AND id = ?");
    const isOrphan = `NOT EXISTS (SELECT 1 FROM response_items WHERE item = items.key)
       AND NOT EXISTS (SELECT 1 FROM conversation_items WHERE item = items.key)`;
    this.#deleteOrphans = database.prepare(`DELETE FROM items WHERE ${isOrphan}`);
    this.#deleteOrphan = database.prepare(`DELETE FROM items WHERE key = ? AND ${isOrphan}`);
  }

  /**
   * The key of what a client sent. Known: by its id, if it says the same; else by what it says, but
   * for one that is in `taken`, since a history may say the same twice. An id that stands for
   * something else gets out of its way.
   */
  refer(owner: string, item: StoredItem, taken: ReadonlySet<number>): number {
    const digest = itemDigest(item);
    const sameId = this.#byId.get(owner, item.id) as ItemRow | undefined;
    if (sameId?.digest === digest && !taken.has(sameId.key)) return sameId.key;
    const twins = this.#byDigest.all(owner, digest) as ItemRow[];
    const twin = twins.find(({ key }) => !taken.has(key));
    if (twin !== undefined) return twin.key;
    const stored = sameId === undefined ? item : { ...item, id: freshId(item.id) };
    return this.#add(owner, stored, digest);
  }

  /** The key of what this server said; a later version of it takes its place. */
  put(owner: string, item: StoredItem): number {
    const digest = itemDigest(item);
    const row = this.#byId.get(owner, item.id) as ItemRow | undefined;
    if (row === undefined) return this.#add(owner, item, digest);
    this.#update.run(digest, JSON.stringify(item), row.key);
    return row.key;
  }

  keyOf(owner: string, id: string): number | null {
    return (this.#byId.get(owner, id) as ItemRow | undefined)?.key ?? null;
  }

  find(owner: string, id: string): StoredItem | null {
    const row = this.#body.get(owner, id) as { body: string } | undefined;
    return row === undefined ? null : (JSON.parse(row.body) as StoredItem);
  }

  /** What nothing refers to any more: of `keys`, or of all items. */
  deleteOrphans(keys?: readonly number[]): void {
    if (keys === undefined) this.#deleteOrphans.run();
    else for (const key of keys) this.#deleteOrphan.run(key);
  }

  #add(owner: string, item: StoredItem, digest: string): number {
    const { lastInsertRowid } = this.#insert.run(owner, item.id, digest, JSON.stringify(item));
    return Number(lastInsertRowid);
  }
}

function freshId(id: string): string {
  return `${id.split("_", 1)[0]}_${randomBytes(24).toString("hex")}`;
}
