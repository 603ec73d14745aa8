/** Conversations and the order of their items. */

import { CommonConversations } from "../common-conversations.ts";
import { sql } from "../sql.ts";
import type { StoreDatabase } from "./database.ts";
import type { ConversationStore, StoredItem } from "../types.ts";
import { type ItemTable, TakenItems } from "./item-table.ts";
import { nowSeconds } from "../retention-limits.ts";

export class SqliteConversations extends CommonConversations implements ConversationStore {
  readonly #database: StoreDatabase;
  readonly #items: ItemTable;

  constructor(database: StoreDatabase, items: ItemTable) {
    super(database);
    this.#database = database;
    this.#items = items;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    return this.#database.inTransaction(() => {
      const keys = this.#keysOf(id);
      const isDeleted =
        this.#database.run(sql`DELETE FROM conversations WHERE owner = ${owner} AND id = ${id}`) >
        0;
      if (isDeleted) this.#items.deleteOrphans(keys);
      return isDeleted;
    });
  }

  async add(owner: string, id: string, items: readonly StoredItem[]): Promise<StoredItem[]> {
    this.#database.inTransaction(() => {
      if (!this.#isThere(owner, id)) return;
      const taken = new TakenItems(this.#keysOf(id));
      const keys = items.map((item) => {
        const key = this.#items.refer(owner, item, taken);
        taken.add(key);
        return key;
      });
      this.#append(id, keys);
    });
    return (await this.items(owner, id))?.slice(-items.length || Infinity) ?? [];
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
      const keys = this.#database.column<number>(sql`DELETE FROM conversation_items
        WHERE conversation_id = ${id} AND item =
          (SELECT key FROM items WHERE owner = ${owner} AND id = ${itemId})
        RETURNING item`);
      this.#items.deleteOrphans(keys);
      return keys.length > 0;
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

  /** Within a transaction. */
  #append(id: string, keys: readonly number[]): void {
    for (const key of keys)
      this.#database.run(sql`INSERT INTO conversation_items (conversation_id, position, item)
       SELECT ${id}, coalesce(max(position), -1) + 1, ${key} FROM conversation_items WHERE conversation_id = ${id}`);
    this.#database.run(sql`UPDATE conversations SET used_at = ${nowSeconds()} WHERE id = ${id}`);
  }
}
