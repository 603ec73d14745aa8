/** Conversations of /v1/conversations and the order of their items. */

import type { StoreHost } from "./host.ts";
import { deleteOrphans, referItems } from "./items.ts";
import { nowSeconds } from "./retention-limits.ts";
import { all, column, Given, run, sql, type StoreDatabase, type Work } from "./sql.ts";
import type { ConversationStore, StoredConversation, StoredItem } from "./types.ts";

export class Conversations implements ConversationStore {
  readonly #database: StoreDatabase;
  readonly #host: Pick<StoreHost, "lockItems">;

  constructor(database: StoreDatabase, host: Pick<StoreHost, "lockItems">) {
    this.#database = database;
    this.#host = host;
  }

  async create(owner: string, { id, createdAt, metadata }: StoredConversation): Promise<void> {
    // A repetition: its first answer was lost with the connection.
    await this.#database.run(sql`INSERT INTO fermata.conversations
      (id, owner, created_at, used_at, metadata)
      VALUES (${id}, ${owner}, ${createdAt}, ${nowSeconds()}, ${JSON.stringify(metadata)})
      ON CONFLICT (id) DO NOTHING`);
  }

  async find(owner: string, id: string): Promise<StoredConversation | null> {
    const row = await this.#database.get<{ created_at: number; metadata: string }>(
      sql`SELECT created_at, metadata FROM fermata.conversations
        WHERE owner = ${owner} AND id = ${id}`,
    );
    if (row === undefined) return null;
    const metadata = JSON.parse(row.metadata) as Record<string, string>;
    return { id, createdAt: row.created_at, metadata };
  }

  async setMetadata(owner: string, id: string, metadata: Record<string, string>): Promise<boolean> {
    const changes = await this.#database.run(sql`UPDATE fermata.conversations
      SET metadata = ${JSON.stringify(metadata)} WHERE owner = ${owner} AND id = ${id}`);
    return changes > 0;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    const { lockItems } = this.#host;
    return await this.#database.inTransaction(function* () {
      yield* lockItems(owner);
      const keys = yield* keysOf(id);
      const changes = yield* run(sql`DELETE FROM fermata.conversations
        WHERE owner = ${owner} AND id = ${id}`);
      if (changes > 0) yield* deleteOrphans(keys);
      return changes > 0;
    });
  }

  async items(owner: string, id: string): Promise<StoredItem[] | null> {
    const rows = await this.#database.all<{ body: string | null }>(sql`SELECT items.body AS body
      FROM fermata.conversations
      LEFT JOIN fermata.conversation_items ON conversation_id = conversations.id
      LEFT JOIN fermata.items ON items.key = item
      WHERE conversations.owner = ${owner} AND conversations.id = ${id} ORDER BY position`);
    if (rows.length === 0) return null;
    return rows.flatMap(({ body }) => (body === null ? [] : [JSON.parse(body) as StoredItem]));
  }

  async add(owner: string, id: string, items: readonly StoredItem[]): Promise<StoredItem[]> {
    const { lockItems } = this.#host;
    await this.#database.inTransaction(function* () {
      yield* lockItems(owner);
      if (!(yield* isThere(owner, id))) return;
      yield* append(id, yield* referItems(owner, items, yield* keysOf(id)));
    });
    return (await this.items(owner, id))?.slice(-items.length || Infinity) ?? [];
  }

  async addResponse(owner: string, responseId: string): Promise<void> {
    const { lockItems } = this.#host;
    await this.#database.inTransaction(function* () {
      yield* lockItems(owner);
      const rows = yield* all<{ conversation_id: string | null; item: number }>(
        sql`SELECT conversation_id, item FROM fermata.responses
          JOIN fermata.response_items ON response_id = responses.id AND part > 0
          WHERE owner = ${owner} AND responses.id = ${responseId} ORDER BY part, position`,
      );
      const id = rows[0]?.conversation_id;
      if (!id || !(yield* isThere(owner, id))) return;
      yield* append(
        id,
        rows.map(({ item }) => item),
      );
    });
  }

  async deleteItem(owner: string, id: string, itemId: string): Promise<boolean> {
    const { lockItems } = this.#host;
    return await this.#database.inTransaction(function* () {
      yield* lockItems(owner);
      if (!(yield* isThere(owner, id))) return false;
      const keys = yield* column<number>(sql`DELETE FROM fermata.conversation_items
        WHERE conversation_id = ${id} AND item =
          (SELECT key FROM fermata.items WHERE owner = ${owner} AND id = ${itemId})
        RETURNING item`);
      yield* deleteOrphans(keys);
      return keys.length > 0;
    });
  }
}

function* isThere(owner: string, id: string): Work<boolean> {
  const changes = yield* run(sql`UPDATE fermata.conversations SET used_at = ${nowSeconds()}
    WHERE owner = ${owner} AND id = ${id}`);
  return changes > 0;
}

function* keysOf(id: string): Work<number[]> {
  return yield* column<number>(sql`SELECT item FROM fermata.conversation_items
    WHERE conversation_id = ${id}`);
}

function* append(id: string, keys: readonly number[]): Work<void> {
  const [last] = yield* column<number | null>(sql`SELECT max(position)
    FROM fermata.conversation_items WHERE conversation_id = ${id}`);
  const first = (last ?? -1) + 1;
  const given = new Given(
    { at: "bigint", key: "bigint" },
    keys.map((key, index) => [first + index, key]),
  );
  yield* run(sql`INSERT INTO fermata.conversation_items (conversation_id, position, item)
    SELECT ${id}, at, key FROM ${given}`);
}
