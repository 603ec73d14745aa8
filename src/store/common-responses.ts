/** What both stores do to responses with the same statements. */

import type { StoreHost } from "./host.ts";
import { itemsOfParts, readTokens, type ResponseRow, storedResponse } from "./rows.ts";
import { sql, type CommonStatements } from "./sql.ts";
import type { HeldCall, ResponseItems, StoredItem, StoredResponse } from "./types.ts";

export class CommonResponses {
  readonly #on: CommonStatements;
  readonly #host: StoreHost;

  constructor(on: CommonStatements, host: StoreHost) {
    this.#on = on;
    this.#host = host;
  }

  async find(owner: string, id: string): Promise<StoredResponse | null> {
    const found = await this.#find(owner, id);
    if (found === null || found.run === null || found.run === this.#host.processId) return found;
    // Another process was at work on it, and may be gone since.
    await this.#host.forgetDead();
    return await this.#find(owner, id);
  }

  async items(owner: string, id: string): Promise<ResponseItems | null> {
    return await itemsOf(this.#on, owner, id);
  }

  async item(owner: string, id: string): Promise<StoredItem | null> {
    const [body] = await this.#on.column<string>(sql`SELECT body FROM fermata.items
      WHERE owner = ${owner} AND id = ${id}`);
    return body === undefined ? null : (JSON.parse(body) as StoredItem);
  }

  async countHold(id: string, by: 1 | -1 = 1): Promise<void> {
    await this.#on.run(sql`UPDATE fermata.response_holds
      SET resumes = resumes + CAST(${by} AS integer) WHERE response_id = ${id}`);
  }

  async setHeldCall(
    responseId: string,
    callId: string,
    state: unknown,
    from?: unknown,
  ): Promise<boolean> {
    const before = from === undefined ? null : JSON.stringify(from);
    const changes = await this.#on.run(sql`INSERT INTO fermata.held_calls AS known
      (holder, call_id, state) VALUES (${responseId}, ${callId}, ${JSON.stringify(state)})
      ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state
      WHERE CAST(${before} AS text) IS NULL OR known.state = ${before}`);
    return changes > 0;
  }

  async heldCall(owner: string, callId: string): Promise<HeldCall | null> {
    const row = await this.#on.get<{ holder: string; state: string }>(sql`SELECT holder, state
      FROM fermata.held_calls JOIN fermata.responses ON responses.id = holder
      WHERE owner = ${owner} AND call_id = ${callId}`);
    return row === undefined ? null : { responseId: row.holder, state: JSON.parse(row.state) };
  }

  async eventTokens(id: string, from: number): Promise<number[]> {
    const columns = await this.#on.column<string | null>(sql`SELECT tokens
      FROM fermata.response_events WHERE response_id = ${id} AND number >= ${from}
      ORDER BY number`);
    return columns.flatMap((column) => readTokens(column) ?? []);
  }

  async events(owner: string, id: string, after = -1): Promise<unknown[]> {
    const bodies = await this.#on.column<string>(sql`SELECT response_events.body AS body
      FROM fermata.response_events JOIN fermata.responses ON responses.id = response_id
      WHERE owner = ${owner} AND id = ${id} AND number > ${after} ORDER BY number`);
    return bodies.map((body) => JSON.parse(body) as unknown);
  }

  async #find(
    owner: string,
    id: string,
  ): Promise<(StoredResponse & { run: string | null }) | null> {
    const row = await this.#on.get<ResponseRow>(sql`SELECT id, run, previous_response_id,
        conversation_id, body
      FROM fermata.responses WHERE owner = ${owner} AND id = ${id}`);
    return row === undefined ? null : storedResponse(row);
  }
}

export async function itemsOf(
  on: CommonStatements,
  owner: string,
  id: string,
): Promise<ResponseItems | null> {
  const rows = await on.all<{ part: number | null; body: string }>(sql`SELECT part,
      items.body AS body
    FROM fermata.responses
    LEFT JOIN fermata.response_items ON response_id = responses.id
    LEFT JOIN fermata.items ON items.key = item
    WHERE responses.owner = ${owner} AND responses.id = ${id} ORDER BY part, position`);
  return rows.length === 0 ? null : itemsOfParts(rows);
}
