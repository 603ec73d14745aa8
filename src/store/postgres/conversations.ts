/** Conversations and the order of their items. */

import { CommonConversations } from "../common-conversations.ts";
import { nowSeconds } from "../retention-limits.ts";
import type { ConversationStore, StoredItem } from "../types.ts";
import { sql } from "../sql.ts";
import type { PostgresDatabase, Statements } from "./database.ts";
import { deleteOrphans, lockItems, referItems } from "./items.ts";

export class PostgresConversations extends CommonConversations implements ConversationStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    super(database);
    this.#database = database;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    return await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      const keys = await itemsOf(on, id);
      const changes = await on.run(sql`DELETE FROM fermata.conversations
        WHERE owner = ${owner} AND id = ${id}`);
      if (changes > 0) await deleteOrphans(on, keys);
      return changes > 0;
    });
  }

  async add(owner: string, id: string, items: readonly StoredItem[]): Promise<StoredItem[]> {
    await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      if (!(await isThere(on, owner, id))) return;
      const keys = await referItems(on, owner, items, await itemsOf(on, id));
      await appendKeys(on, id, keys);
    });
    return (await this.items(owner, id))?.slice(-items.length || Infinity) ?? [];
  }

  async addResponse(owner: string, responseId: string): Promise<void> {
    await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      const rows = await on.all<{ conversation_id: string | null; item: number }>(
        sql`SELECT conversation_id, item FROM fermata.responses
          JOIN fermata.response_items ON response_id = responses.id AND part > 0
          WHERE owner = ${owner} AND responses.id = ${responseId} ORDER BY part, position`,
      );
      const id = rows[0]?.conversation_id;
      if (!id || !(await isThere(on, owner, id))) return;
      await appendKeys(
        on,
        id,
        rows.map(({ item }) => item),
      );
    });
  }

  async deleteItem(owner: string, id: string, itemId: string): Promise<boolean> {
    return await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      if (!(await isThere(on, owner, id))) return false;
      const keys = await on.column<number>(sql`DELETE FROM fermata.conversation_items
        WHERE conversation_id = ${id} AND item =
          (SELECT key FROM fermata.items WHERE owner = ${owner} AND id = ${itemId})
        RETURNING item`);
      await deleteOrphans(on, keys);
      return keys.length > 0;
    });
  }
}

async function isThere(on: Statements, owner: string, id: string): Promise<boolean> {
  const changes = await on.run(sql`UPDATE fermata.conversations SET used_at = ${nowSeconds()}
    WHERE owner = ${owner} AND id = ${id}`);
  return changes > 0;
}

async function itemsOf(on: Statements, id: string): Promise<number[]> {
  return await on.column<number>(sql`SELECT item FROM fermata.conversation_items
    WHERE conversation_id = ${id}`);
}

async function appendKeys(on: Statements, id: string, keys: readonly number[]): Promise<void> {
  await on.run(sql`INSERT INTO fermata.conversation_items (conversation_id, position, item)
    SELECT ${id}, place + coalesce((SELECT max(position) FROM fermata.conversation_items
      WHERE conversation_id = ${id}), -1), item
    FROM unnest(${keys}::bigint[]) WITH ORDINALITY AS new (item, place)`);
}
