/** What calls have come to that outlive their process, by who holds them: a run or a response. */

import { sql, type StoreDatabase } from "./database.ts";

export class HeldCallTable {
  readonly #database: StoreDatabase;

  constructor(database: StoreDatabase) {
    this.#database = database;
  }

  /** @returns false: it is not written, because the call had come to something else than `from` */
  set(holder: string, callId: string, state: unknown, from?: unknown): boolean {
    const before = from === undefined ? null : JSON.stringify(from);
    const { changes } = this.#database.run(sql`INSERT INTO held_calls (holder, call_id, state)
      VALUES (${holder}, ${callId}, ${JSON.stringify(state)})
       ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state
       WHERE ${before} IS NULL OR held_calls.state = ${before}`);
    return changes > 0;
  }

  /** The states by the ids of the calls. */
  of(holder: string): Record<string, unknown> {
    const rows = this.#database.all<{ call_id: string; state: string }>(
      sql`SELECT call_id, state FROM held_calls WHERE holder = ${holder}`,
    );
    return Object.fromEntries(rows.map(({ call_id: id, state }) => [id, JSON.parse(state)]));
  }

  ofResponses(owner: string, callId: string): { responseId: string; state: unknown } | null {
    const row = this.#database.get<{ holder: string; state: string }>(
      sql`SELECT holder, state FROM held_calls JOIN responses ON responses.id = holder
       WHERE owner = ${owner} AND call_id = ${callId}`,
    );
    return row === undefined ? null : { responseId: row.holder, state: JSON.parse(row.state) };
  }

  delete(holder: string): void {
    this.#database.run(sql`DELETE FROM held_calls WHERE holder = ${holder}`);
  }
}
