/** Responses, the order of their items, their events and holds. */

import { CommonResponses } from "../common-responses.ts";
import { failedBody, incomplete, isAtWork } from "../response-state.ts";
import {
  parts,
  readable,
  type ResponseHoldRow,
  responseHoldOf,
  type ResponseRow,
  storedResponse,
  writtenTokens,
} from "../rows.ts";
import { sql } from "../sql.ts";
import type { StoreDatabase } from "./database.ts";
import type { StoreHost } from "../host.ts";
import type {
  NewResponse,
  ResponseHold,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../types.ts";
import { type ItemTable, TakenItems } from "./item-table.ts";

export class SqliteResponses extends CommonResponses implements ResponseStore {
  readonly #database: StoreDatabase;
  readonly #items: ItemTable;
  readonly #host: StoreHost;

  constructor(database: StoreDatabase, items: ItemTable, host: StoreHost) {
    super(database, {
      ...host,
      forgetDead: () => database.inTransaction(() => host.forgetDead()),
    });
    this.#database = database;
    this.#items = items;
    this.#host = host;
  }

  async create(response: NewResponse): Promise<void> {
    this.#database.inTransaction(() => {
      this.#insert(response);
      this.#host.keepLimits();
    });
  }

  async update(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void> {
    const work = (): void => this.#write(owner, id, body, output);
    if (isAtWork(body)) this.#database.inTransaction(work);
    else await this.#host.writeEnd(id, work);
  }

  async all(owner: string): Promise<StoredResponse[]> {
    return this.#database
      .all<ResponseRow>(sql`SELECT id, run, previous_response_id, conversation_id, body
       FROM responses WHERE owner = ${owner} ORDER BY created_at, rowid`)
      .map(storedResponse);
  }

  async delete(owner: string, id: string): Promise<boolean> {
    return this.#database.inTransaction(() => {
      const keys = this.#database.column<number>(sql`SELECT item FROM response_items
        WHERE response_id = ${id}`);
      const isDeleted =
        this.#database.run(sql`DELETE FROM responses WHERE owner = ${owner} AND id = ${id}`) > 0;
      if (isDeleted) this.#items.deleteOrphans(keys);
      return isDeleted;
    });
  }

  async updateItem(owner: string, item: StoredItem): Promise<void> {
    this.#database.inTransaction(() => this.#items.put(owner, item));
  }

  async setHold({
    id,
    request,
    round,
    next,
    deadline,
  }: Omit<ResponseHold, "resumes">): Promise<void> {
    // The response may have been deleted meanwhile.
    this.#database
      .run(sql`INSERT OR REPLACE INTO response_holds (response_id, request, round, next, deadline)
       SELECT id, ${JSON.stringify(request)}, ${JSON.stringify(round)}, ${next}, ${deadline}
       FROM responses WHERE id = ${id}`);
  }

  async takeHolds(): Promise<ResponseHold[]> {
    return this.#database.inTransaction(() => {
      this.#host.forgetDead();
      const rows = this.#database
        .all<ResponseHoldRow>(sql`SELECT owner, id, request, round, next, deadline, resumes, body
         FROM response_holds JOIN responses ON id = response_id WHERE run IS NULL`);
      return rows.flatMap((row) => this.#take(row) ?? []);
    });
  }

  /** Undefined: it cannot be read, and has failed. Within a transaction. */
  #take(row: ResponseHoldRow): ResponseHold | undefined {
    const items = this.#database.column<string>(sql`SELECT items.body FROM response_items
      JOIN items ON items.key = item WHERE response_id = ${row.id}`);
    const hold = responseHoldOf(row, items);
    if (hold === undefined) this.#fail(row);
    else
      this.#database.run(
        sql`UPDATE responses SET run = ${this.#host.processId} WHERE id = ${row.id}`,
      );
    return hold;
  }

  async addEvent(
    id: string,
    number: number,
    event: object,
    tokens?: readonly number[],
  ): Promise<void> {
    // The response may have been deleted while it was generated.
    this.#database.run(sql`INSERT INTO response_events (response_id, number, body, tokens)
       SELECT id, ${number}, ${JSON.stringify(event)}, ${writtenTokens(tokens)}
       FROM responses WHERE id = ${id}`);
  }

  /** Responses of a process that wait for their client belong to no process from now on. */
  leaveHolds(run: string): void {
    this.#database.run(sql`UPDATE responses SET run = NULL
       WHERE run = ${run} AND id IN (SELECT response_id FROM response_holds)`);
  }

  /** Fails everything that a process left unfinished, except what waits for its client. Within a transaction. */
  failAll(run: string): void {
    this.leaveHolds(run);
    for (const row of this.#database.all<{
      owner: string;
      id: string;
      body: string;
    }>(sql`SELECT owner, id, body FROM responses WHERE run = ${run}`))
      this.#fail(row);
  }

  /** What cannot be read of it stays as it is. Within a transaction. */
  #fail({ owner, id, body }: { owner: string; id: string; body: string }): void {
    this.#database.run(sql`UPDATE responses SET body = ${failedBody(body)}, run = NULL
      WHERE id = ${id}`);
    this.#database.run(sql`DELETE FROM response_holds WHERE response_id = ${id}`);
    const output = readable(() => this.#outputOf(id).map(incomplete));
    if (output !== undefined) this.#writeOutput(owner, id, output);
  }

  #outputOf(id: string): StoredItem[] {
    const bodies = this.#database.column<string>(sql`SELECT items.body FROM response_items
      JOIN items ON items.key = item WHERE response_id = ${id} AND part = 2 ORDER BY position`);
    return bodies.map((body) => JSON.parse(body) as StoredItem);
  }

  /** Within a transaction. */
  #insert(response: NewResponse): void {
    const { id, owner, createdAt, previousResponseId, conversationId, body, input } = response;
    const text = JSON.stringify(body);
    const run = isAtWork(body) ? this.#host.processId : null;
    this.#database
      .run(sql`INSERT INTO responses (id, owner, created_at, run, previous_response_id, conversation_id, body)
       VALUES (${id}, ${owner}, ${createdAt}, ${run}, ${previousResponseId}, ${conversationId}, ${text})`);
    if (previousResponseId !== null)
      this.#database.run(sql`INSERT INTO response_items (response_id, part, position, item)
       SELECT ${id}, 0, row_number() OVER (ORDER BY part, position) - 1, item
       FROM response_items WHERE response_id = ${previousResponseId}`);
    if (conversationId !== null)
      this.#database.run(sql`INSERT INTO response_items (response_id, part, position, item)
       SELECT ${id}, 0, row_number() OVER (ORDER BY position) - 1, item
       FROM conversation_items WHERE conversation_id = ${conversationId}`);
    const taken = new TakenItems(
      this.#database.column<number>(sql`SELECT item FROM response_items
        WHERE response_id = ${id} AND part = 0`),
    );
    input.forEach((item, position) => {
      const key = this.#items.refer(owner, item, taken);
      taken.add(key);
      this.#database.run(sql`INSERT INTO response_items (response_id, part, position, item)
        VALUES (${id}, ${parts.input}, ${position}, ${key})`);
    });
  }

  /** Within a transaction. */
  #write(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): void {
    const run = isAtWork(body) ? this.#host.processId : null;
    const changes = this.#database
      .run(sql`UPDATE responses SET body = ${JSON.stringify(body)}, run = ${run}
      WHERE owner = ${owner} AND id = ${id}`);
    if (changes === 0) return;
    if (run === null) this.#database.run(sql`DELETE FROM response_holds WHERE response_id = ${id}`);
    this.#writeOutput(owner, id, output);
  }

  /** Within a transaction. */
  #writeOutput(owner: string, id: string, output: readonly StoredItem[]): void {
    this.#database.run(sql`DELETE FROM response_items WHERE response_id = ${id} AND part = 2`);
    output.forEach((item, position) => {
      this.#database.run(sql`INSERT INTO response_items (response_id, part, position, item)
        VALUES (${id}, ${parts.output}, ${position}, ${this.#items.put(owner, item)})`);
    });
  }
}
