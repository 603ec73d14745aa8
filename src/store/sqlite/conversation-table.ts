/** Conversations and the order of their items. Writing is done within the caller's transaction. */

import type { Database } from "libsql";
import type { StoredConversation, StoredItem } from "../types.ts";
import { type ItemTable, TakenItems } from "./item-table.ts";
import { nowSeconds } from "./runs.ts";

export class ConversationTable {
  readonly #items: ItemTable;
  readonly #insert;
  readonly #find;
  readonly #setMetadata;
  readonly #delete;
  readonly #itemRows;
  readonly #keys;
  readonly #appendOne;
  readonly #use;
  readonly #responseKeys;
  readonly #deleteItem;

  constructor(database: Database, items: ItemTable) {
    this.#items = items;
    this.#insert = database.prepare(
      "INSERT INTO conversations (id, owner, created_at, used_at, metadata) VALUES (?, ?, ?, ?, ?)",
    );
    this.#find = database.prepare(
      "SELECT created_at, metadata FROM conversations WHERE owner = ? AND id = ?",
    );
    this.#setMetadata = database.prepare(
      "UPDATE conversations SET metadata = ? WHERE owner = ? AND id = ?",
    );
    this.#delete = database.prepare("DELETE FROM conversations WHERE owner = ? AND id = ?");
    this.#itemRows = database.prepare(
      `SELECT items.body AS body FROM conversation_items JOIN items ON items.key = item
       WHERE conversation_id = ? ORDER BY position`,
    );
    this.#keys = database.prepare("SELECT item FROM conversation_items WHERE conversation_id = ?");
    this.#appendOne = database.prepare(
      `INSERT INTO conversation_items (conversation_id, position, item)
       SELECT ?, coalesce(max(position), -1) + 1, ? FROM conversation_items WHERE conversation_id = ?`,
    );
    this.#use = database.prepare("UPDATE conversations SET used_at = ? WHERE id = ?");
    this.#responseKeys = database.prepare(
      `SELECT conversation_id, item FROM responses
       JOIN response_items ON response_id = responses.id AND part > 0
       WHERE owner = ? AND responses.id = ? ORDER BY part, position`,
    );
    this.#deleteItem = database.prepare(
      "DELETE FROM conversation_items WHERE conversation_id = ? AND item = ?",
    );
  }

  insert(owner: string, { id, createdAt, metadata }: StoredConversation): void {
    this.#insert.run(id, owner, createdAt, nowSeconds(), JSON.stringify(metadata));
  }

  find(owner: string, id: string): StoredConversation | null {
    const row = this.#find.get(owner, id) as { created_at: number; metadata: string } | undefined;
    if (row === undefined) return null;
    const metadata = JSON.parse(row.metadata) as Record<string, string>;
    return { id, createdAt: row.created_at, metadata };
  }

  setMetadata(owner: string, id: string, metadata: Record<string, string>): boolean {
    return this.#setMetadata.run(JSON.stringify(metadata), owner, id).changes > 0;
  }

  delete(owner: string, id: string): boolean {
    const keys = (this.#keys.all(id) as { item: number }[]).map((row) => row.item);
    const isDeleted = this.#delete.run(owner, id).changes > 0;
    if (isDeleted) this.#items.deleteOrphans(keys);
    return isDeleted;
  }

  items(owner: string, id: string): StoredItem[] | null {
    if (this.find(owner, id) === null) return null;
    const rows = this.#itemRows.all(id) as { body: string }[];
    return rows.map(({ body }) => JSON.parse(body) as StoredItem);
  }

  append(owner: string, id: string, items: readonly StoredItem[]): StoredItem[] {
    if (this.find(owner, id) === null) return [];
    const taken = new TakenItems((this.#keys.all(id) as { item: number }[]).map((row) => row.item));
    for (const item of items) {
      const key = this.#items.refer(owner, item, taken);
      taken.add(key);
      this.#appendOne.run(id, key, id);
    }
    this.#use.run(nowSeconds(), id);
    return this.items(owner, id)?.slice(-items.length || Infinity) ?? [];
  }

  /** Input and output of a response that is part of a conversation. */
  appendResponse(owner: string, responseId: string): void {
    const rows = this.#responseKeys.all(owner, responseId) as {
      conversation_id: string | null;
      item: number;
    }[];
    const id = rows[0]?.conversation_id;
    if (!id || this.find(owner, id) === null) return;
    for (const { item } of rows) this.#appendOne.run(id, item, id);
    this.#use.run(nowSeconds(), id);
  }

  deleteItem(owner: string, id: string, itemId: string): boolean {
    if (this.find(owner, id) === null) return false;
    const key = this.#items.keyOf(owner, itemId);
    if (key === null || this.#deleteItem.run(id, key).changes === 0) return false;
    this.#items.deleteOrphans([key]);
    return true;
  }
}
