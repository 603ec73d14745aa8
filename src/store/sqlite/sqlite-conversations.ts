/** Conversations and the order of their items. */

import { sql, type StoreDatabase } from "./database.ts";
import type { ConversationStore, StoredConversation, StoredItem } from "../types.ts";
import { type ItemTable, TakenItems } from "./item-table.ts";
import { nowSeconds } from "../retention-limits.ts";

export class SqliteConversations implements ConversationStore {
  readonly #database: StoreDatabase;
  readonly #items: ItemTable;

  constructor(database: StoreDatabase, items: ItemTable) {
    this.#database = database;
    this.#items = items;
  }

  async create(owner: string, { id, createdAt, metadata }: StoredConversation): Promise<void> {
    this.#database.run(sql`INSERT INTO conversations (id, owner, created_at, used_at, metadata)
      VALUES (${id}, ${owner}, ${createdAt}, ${nowSeconds()}, ${JSON.stringify(metadata)})`);
  }

  async find(owner: string, id: string): Promise<StoredConversation | null> {
    const row = this.#database.get<{
      created_at: number;
      metadata: string;
    }>(sql`SELECT created_at, metadata FROM conversations WHERE owner = ${owner} AND id = ${id}`);
    if (row === undefined) return null;
    const metadata = JSON.parse(row.metadata) as Record<string, string>;
    return { id, createdAt: row.created_at, metadata };
  }

  async setMetadata(owner: string, id: string, metadata: Record<string, string>): Promise<boolean> {
    return (
      this.#database.run(sql`UPDATE conversations SET metadata = ${JSON.stringify(metadata)}
        WHERE owner = ${owner} AND id = ${id}`).changes > 0
    );
  }

  async delete(owner: string, id: string): Promise<boolean> {
    return this.#database.inTransaction(() => {
      const keys = this.#keysOf(id);
      const isDeleted =
        this.#database.run(sql`DELETE FROM conversations WHERE owner = ${owner} AND id = ${id}`)
          .changes > 0;
      if (isDeleted) this.#items.deleteOrphans(keys);
      return isDeleted;
    });
  }

  async items(owner: string, id: string): Promise<StoredItem[] | null> {
    return this.#isThere(owner, id) ? this.#itemsOf(id) : null;
  }

  async add(owner: string, id: string, items: readonly StoredItem[]): Promise<StoredItem[]> {
    return this.#database.inTransaction(() => {
      if (!this.#isThere(owner, id)) return [];
      const taken = new TakenItems(this.#keysOf(id));
      const keys = items.map((item) => {
        const key = this.#items.refer(owner, item, taken);
        taken.add(key);
        return key;
      });
      this.#append(id, keys);
      return this.#itemsOf(id).slice(-items.length || Infinity);
    });
  }

  async addResponse(owner: string, responseId: string): Promise<void> {
    this.#database.inTransaction(() => {
      const rows = this.#database.all<{
        conversation_id: string | null;
        item: number;
      }>(sql`SELECT conversation_id, item FROM responses
       JOIN response_items ON response_id = responses.id AND part > 0
       WHERE owner = ${owner} AND responses.id = ${responseId} ORDER BY part, position`);
      const id = rows[0]?.conversation_id;
      if (!id || !this.#isThere(owner, id)) return;
      this.#append(
        id,
        rows.map(({ item }) => item),
      );
    });
  }

  async deleteItem(owner: string, id: string, itemId: string): Promise<boolean> {
    return this.#database.inTransaction(() => {
      if (!this.#isThere(owner, id)) return false;
      const key = this.#items.keyOf(owner, itemId);
      if (
        key === null ||
        this.#database.run(sql`DELETE FROM conversation_items
        WHERE conversation_id = ${id} AND item = ${key}`).changes === 0
      )
        return false;
      this.#items.deleteOrphans([key]);
      return true;
    });
  }

  #isThere(owner: string, id: string): boolean {
    const found = sql`SELECT 1 FROM conversations WHERE owner = ${owner} AND id = ${id}`;
    return this.#database.get(found) !== undefined;
  }

  #keysOf(id: string): number[] {
    return this.#database.column(sql`SELECT item FROM conversation_items
      WHERE conversation_id = ${id}`);
  }

  #itemsOf(id: string): StoredItem[] {
    const bodies = this.#database.column<string>(sql`SELECT items.body AS body
      FROM conversation_items JOIN items ON items.key = item
       WHERE conversation_id = ${id} ORDER BY position`);
    return bodies.map((body) => JSON.parse(body) as StoredItem);
  }

  /** Within a transaction. */
  #append(id: string, keys: readonly number[]): void {
    for (const key of keys)
      this.#database.run(sql`INSERT INTO conversation_items (conversation_id, position, item)
       SELECT ${id}, coalesce(max(position), -1) + 1, ${key} FROM conversation_items WHERE conversation_id = ${id}`);
    this.#database.run(sql`UPDATE conversations SET used_at = ${nowSeconds()} WHERE id = ${id}`);
  }
}
