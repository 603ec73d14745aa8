/** What both stores do to conversations with the same statements. */

import { nowSeconds } from "./retention-limits.ts";
import { sql, type CommonStatements } from "./sql.ts";
import type { StoredConversation, StoredItem } from "./types.ts";

export class CommonConversations {
  readonly #on: CommonStatements;

  constructor(on: CommonStatements) {
    this.#on = on;
  }

  async create(owner: string, { id, createdAt, metadata }: StoredConversation): Promise<void> {
    // A repetition: its first answer was lost with the connection.
    await this.#on.run(sql`INSERT INTO fermata.conversations
      (id, owner, created_at, used_at, metadata)
      VALUES (${id}, ${owner}, ${createdAt}, ${nowSeconds()}, ${JSON.stringify(metadata)})
      ON CONFLICT (id) DO NOTHING`);
  }

  async find(owner: string, id: string): Promise<StoredConversation | null> {
    const row = await this.#on.get<{ created_at: number; metadata: string }>(
      sql`SELECT created_at, metadata FROM fermata.conversations
        WHERE owner = ${owner} AND id = ${id}`,
    );
    if (row === undefined) return null;
    const metadata = JSON.parse(row.metadata) as Record<string, string>;
    return { id, createdAt: row.created_at, metadata };
  }

  async setMetadata(owner: string, id: string, metadata: Record<string, string>): Promise<boolean> {
    const changes = await this.#on.run(sql`UPDATE fermata.conversations
      SET metadata = ${JSON.stringify(metadata)} WHERE owner = ${owner} AND id = ${id}`);
    return changes > 0;
  }

  async items(owner: string, id: string): Promise<StoredItem[] | null> {
    const rows = await this.#on.all<{ body: string | null }>(sql`SELECT items.body AS body
      FROM fermata.conversations
      LEFT JOIN fermata.conversation_items ON conversation_id = conversations.id
      LEFT JOIN fermata.items ON items.key = item
      WHERE conversations.owner = ${owner} AND conversations.id = ${id} ORDER BY position`);
    if (rows.length === 0) return null;
    return rows.flatMap(({ body }) => (body === null ? [] : [JSON.parse(body) as StoredItem]));
  }
}
