/** Conversations and the order of their items. Writing is done within the caller's transaction. */

import { sql, type StoreDatabase } from "./database.ts";
import type { StoredConversation, StoredItem } from "../types.ts";
import { type ItemTable, TakenItems } from "./item-table.ts";
import { nowSeconds } from "../retention-limits.ts";

export class ConversationTable {
  readonly #database: StoreDatabase;
  readonly #items: ItemTable;

  constructor(database: StoreDatabase, items: ItemTable) {
    this.#database = database;
    this.#items = items;
  }

  insert(owner: string, { id, createdAt, metadata }: StoredConversation): void {
    this.#database.run(sql`INSERT INTO conversations (id, owner, created_at, used_at, metadata)
      VALUES (${id}, ${owner}, ${createdAt}, ${nowSeconds()}, ${JSON.stringify(metadata)})`);
  }

  find(owner: string, id: string): StoredConversation | null {
    const row = this.#database.get<{
      created_at: number;
      metadata: string;
    }>(sql`SELECT created_at, metadata FROM conversations WHERE owner = ${owner} AND id = ${id}`);
    if (row === undefined) return null;
    const metadata = JSON.parse(row.metadata) as Record<string, string>;
    return { id, createdAt: row.created_at, metadata };
  }

  setMetadata(owner: string, id: string, metadata: Record<string, string>): boolean {
    return (
      this.#database.run(sql`UPDATE conversations SET metadata = ${JSON.stringify(metadata)}
        WHERE owner = ${owner} AND id = ${id}`).changes > 0
    );
  }

  delete(owner: string, id: string): boolean {
    const keys = this.#database.column<number>(sql`SELECT item FROM conversation_items
      WHERE conversation_id = ${id}`);
    const isDeleted =
      this.#database.run(sql`DELETE FROM conversations WHERE owner = ${owner} AND id = ${id}`)
        .changes > 0;
    if (isDeleted) this.#items.deleteOrphans(keys);
    return isDeleted;
  }

  items(owner: string, id: string): StoredItem[] | null {
    if (this.find(owner, id) === null) return null;
    const bodies = this.#database.column<string>(sql`SELECT items.body AS body
      FROM conversation_items JOIN items ON items.key = item
       WHERE conversation_id = ${id} ORDER BY position`);
    return bodies.map((body) => JSON.parse(body) as StoredItem);
  }

  append(owner: string, id: string, items: readonly StoredItem[]): StoredItem[] {
    if (this.find(owner, id) === null) return [];
    const taken = new TakenItems(
      this.#database.column<number>(sql`SELECT item FROM conversation_items
        WHERE conversation_id = ${id}`),
    );
    for (const item of items) {
      const key = this.#items.refer(owner, item, taken);
      taken.add(key);
      this.#database.run(sql`INSERT INTO conversation_items (conversation_id, position, item)
       SELECT ${id}, coalesce(max(position), -1) + 1, ${key} FROM conversation_items WHERE conversation_id = ${id}`);
    }
    this.#database.run(sql`UPDATE conversations SET used_at = ${nowSeconds()} WHERE id = ${id}`);
    return this.items(owner, id)?.slice(-items.length || Infinity) ?? [];
  }

  /** Input and output of a response that is part of a conversation. */
  appendResponse(owner: string, responseId: string): void {
    const rows = this.#database.all<{
      conversation_id: string | null;
      item: number;
    }>(sql`SELECT conversation_id, item FROM responses
       JOIN response_items ON response_id = responses.id AND part > 0
       WHERE owner = ${owner} AND responses.id = ${responseId} ORDER BY part, position`);
    const id = rows[0]?.conversation_id;
    if (!id || this.find(owner, id) === null) return;
    for (const { item } of rows)
      this.#database.run(sql`INSERT INTO conversation_items (conversation_id, position, item)
       SELECT ${id}, coalesce(max(position), -1) + 1, ${item} FROM conversation_items WHERE conversation_id = ${id}`);
    this.#database.run(sql`UPDATE conversations SET used_at = ${nowSeconds()} WHERE id = ${id}`);
  }

  deleteItem(owner: string, id: string, itemId: string): boolean {
    if (this.find(owner, id) === null) return false;
    const key = this.#items.keyOf(owner, itemId);
    if (
      key === null ||
      this.#database.run(sql`DELETE FROM conversation_items
        WHERE conversation_id = ${id} AND item = ${key}`).changes === 0
    )
      return false;
    this.#items.deleteOrphans([key]);
    return true;
  }
}
