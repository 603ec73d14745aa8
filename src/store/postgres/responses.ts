/** Responses, their items, events and holds. */

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
import type {
  NewResponse,
  ResponseHold,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../types.ts";
import { sql } from "../sql.ts";
import type { PostgresDatabase, Statements } from "./database.ts";
import type { PostgresHost } from "./host.ts";
import { deleteOrphans, lockItems, putItems, referItems } from "./items.ts";

export class PostgresResponses extends CommonResponses implements ResponseStore {
  readonly #database: PostgresDatabase;
  readonly #host: PostgresHost;

  constructor(database: PostgresDatabase, host: PostgresHost) {
    super(database, host);
    this.#database = database;
    this.#host = host;
  }

  async create(response: NewResponse): Promise<void> {
    const { id, owner, createdAt, previousResponseId, conversationId, body, input } = response;
    const run = isAtWork(body) ? this.#host.processId : null;
    await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      await on.run(sql`INSERT INTO fermata.responses
        (id, owner, created_at, run, previous_response_id, conversation_id, body)
        VALUES (${id}, ${owner}, ${createdAt}, ${run}, ${previousResponseId}, ${conversationId},
          ${JSON.stringify(body)})`);
      const history = await copyHistory(on, id, { previousResponseId, conversationId });
      const keys = await referItems(on, owner, input, history);
      await insertItems(on, id, parts.input, keys);
    });
    if (run !== null) this.#host.claims.set(id, 1);
    this.#host.keepLimits();
  }

  async update(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void> {
    // Tried again later, it is written only if no other process has taken it over meanwhile.
    const claim = this.#host.claims.of(id);
    const work = (): Promise<void> => this.#write({ owner, id, claim }, body, output);
    if (isAtWork(body)) await work();
    else await this.#host.writeEnd(id, work);
    this.#host.changed(id);
  }

  async all(owner: string): Promise<StoredResponse[]> {
    const rows = await this.#database.all<ResponseRow>(sql`SELECT id, run, previous_response_id,
      conversation_id, body FROM fermata.responses WHERE owner = ${owner}
      ORDER BY created_at, row`);
    return rows.map(storedResponse);
  }

  async delete(owner: string, id: string): Promise<boolean> {
    return await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      const keys = await on.column<number>(sql`SELECT item FROM fermata.response_items
        WHERE response_id = ${id}`);
      const changes = await on.run(sql`DELETE FROM fermata.responses
        WHERE owner = ${owner} AND id = ${id}`);
      if (changes > 0) await deleteOrphans(on, keys);
      return changes > 0;
    });
  }

  async updateItem(owner: string, item: StoredItem): Promise<void> {
    await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      await putItems(on, owner, [item]);
    });
  }

  /** The response may have been deleted meanwhile, or be another process's. */
  async setHold({
    id,
    request,
    round,
    next,
    deadline,
  }: Omit<ResponseHold, "resumes">): Promise<void> {
    await this.#database.run(sql`INSERT INTO fermata.response_holds
      (response_id, request, round, next, deadline)
      SELECT id, ${JSON.stringify(request)}, ${JSON.stringify(round)}, ${next}::integer,
        ${deadline}::double precision
      FROM fermata.responses WHERE id = ${id} AND run = ${this.#host.processId}
        AND claim = ${this.#host.claims.of(id)}
      FOR SHARE
      ON CONFLICT (response_id) DO UPDATE SET request = excluded.request,
        round = excluded.round, next = excluded.next, deadline = excluded.deadline,
        resumes = 0`);
  }

  /** Responses of this process that wait for their client belong to no process from now on. */
  async leaveHolds(): Promise<void> {
    await leaveHolds(this.#database, this.#host.processId);
  }

  /** Those that are nobody's. Another process that looks at the same time takes others. */
  async takeHolds(): Promise<ResponseHold[]> {
    if (!(await this.#host.forgetDead())) return [];
    // Read before it is this process's: what cannot be read now is left to the next look.
    let taken: { hold: ResponseHold; claim: number }[] = [];
    await this.#database.inTransaction(async (on) => {
      const rows = await on.all<ResponseHoldRow & { claim: number }>(sql`SELECT owner, id, request,
          round, next, deadline, resumes, body, claim
        FROM fermata.response_holds JOIN fermata.responses ON id = response_id
        WHERE run IS NULL AND NOT id = ANY(${this.#host.claims.ids})
        ORDER BY row FOR NO KEY UPDATE OF responses SKIP LOCKED`);
      const read: typeof taken = [];
      for (const { claim, ...row } of rows) {
        const hold = await this.#take(on, row);
        if (hold !== undefined) read.push({ hold, claim: claim + 1 });
      }
      taken = read;
    });
    for (const { hold, claim } of taken) this.#host.claims.set(hold.id, claim);
    return taken.map(({ hold }) => hold);
  }

  /** Undefined: it cannot be read, and has failed. */
  async #take(on: Statements, row: ResponseHoldRow): Promise<ResponseHold | undefined> {
    const items = await on.column<string>(sql`SELECT items.body FROM fermata.response_items
      JOIN fermata.items ON items.key = item WHERE response_id = ${row.id}`);
    const hold = responseHoldOf(row, items);
    if (hold === undefined) await failResponse(on, row);
    else
      await on.run(sql`UPDATE fermata.responses
        SET run = ${this.#host.processId}, claim = claim + 1 WHERE id = ${row.id}`);
    return hold;
  }

  /** Nothing, where the response was deleted while it was generated, or is another process's. */
  async addEvent(
    id: string,
    number: number,
    event: object,
    tokens?: readonly number[],
  ): Promise<void> {
    await this.#database.run(sql`INSERT INTO fermata.response_events
        (response_id, number, body, tokens)
      SELECT id, ${number}::integer, ${JSON.stringify(event)}, ${writtenTokens(tokens)}::text
      FROM fermata.responses
      WHERE id = ${id} AND (run IS NULL OR run = ${this.#host.processId})
        AND claim = ${this.#host.claims.of(id)}
      FOR SHARE
      ON CONFLICT (response_id, number) DO NOTHING`);
    this.#host.changed(id);
  }

  /** `claim`: as this process knew it when the update was wanted; 0: it is no work of this process. */
  async #write(
    { owner, id, claim }: { owner: string; id: string; claim: number },
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void> {
    const run = isAtWork(body) ? this.#host.processId : null;
    await this.#database.inTransaction(async (on) => {
      await lockItems(on, owner);
      const changes = await on.run(sql`UPDATE fermata.responses
        SET body = ${JSON.stringify(body)}, run = ${run}
        WHERE owner = ${owner} AND id = ${id} AND (run IS NULL OR run = ${this.#host.processId})
          AND claim = coalesce(nullif(${claim}::integer, 0), claim)`);
      if (changes === 0) return;
      if (run === null) await deleteHold(on, id);
      await writeOutput(on, { owner, id }, output);
    });
    if (run === null) this.#host.claims.endSoon(id);
  }
}

/** What came before the response. @returns the keys of its items */
async function copyHistory(
  on: Statements,
  id: string,
  {
    previousResponseId,
    conversationId,
  }: Pick<NewResponse, "previousResponseId" | "conversationId">,
): Promise<number[]> {
  if (previousResponseId === null && conversationId === null) return [];
  return await on.column<number>(sql`
    INSERT INTO fermata.response_items (response_id, part, position, item)
    SELECT ${id}, 0, row_number() OVER (ORDER BY source, part, position) - 1, item FROM (
      SELECT 0 AS source, part, position, item FROM fermata.response_items
      WHERE response_id = ${previousResponseId}
      UNION ALL SELECT 1, 0, position, item FROM fermata.conversation_items
      WHERE conversation_id = ${conversationId}) AS earlier
    RETURNING item`);
}

async function leaveHolds(on: Statements, process: string): Promise<void> {
  await on.run(sql`UPDATE fermata.responses SET run = NULL
    WHERE run = ${process} AND id IN (SELECT response_id FROM fermata.response_holds)`);
}

/** Fails everything that a process left unfinished, except what waits for its client. */
export async function failResponsesOf(on: Statements, process: string): Promise<void> {
  await leaveHolds(on, process);
  const rows = await on.all<{ owner: string; id: string; body: string }>(sql`SELECT owner, id, body
    FROM fermata.responses WHERE run = ${process} ORDER BY owner, row FOR UPDATE`);
  for (const row of rows) await failResponse(on, row);
}

/** What cannot be read of it stays as it is. */
async function failResponse(
  on: Statements,
  { owner, id, body }: { owner: string; id: string; body: string },
): Promise<void> {
  await lockItems(on, owner);
  await on.run(sql`UPDATE fermata.responses SET body = ${failedBody(body)}, run = NULL,
    claim = claim + 1 WHERE id = ${id}`);
  await deleteHold(on, id);
  const bodies = await on.column<string>(sql`SELECT items.body FROM fermata.response_items
    JOIN fermata.items ON items.key = item
    WHERE response_id = ${id} AND part = ${parts.output} ORDER BY position`);
  const output = readable(() => bodies.map((text) => JSON.parse(text) as StoredItem));
  if (output !== undefined) await writeOutput(on, { owner, id }, output.map(incomplete));
}

async function deleteHold(on: Statements, id: string): Promise<void> {
  await on.run(sql`DELETE FROM fermata.response_holds WHERE response_id = ${id}`);
}

async function writeOutput(
  on: Statements,
  { owner, id }: { owner: string; id: string },
  output: readonly StoredItem[],
): Promise<void> {
  await on.run(sql`DELETE FROM fermata.response_items WHERE response_id = ${id} AND part = 2`);
  if (output.length > 0) await insertItems(on, id, parts.output, await putItems(on, owner, output));
}

async function insertItems(
  on: Statements,
  id: string,
  part: number,
  keys: readonly number[],
): Promise<void> {
  if (keys.length === 0) return;
  await on.run(sql`INSERT INTO fermata.response_items (response_id, part, position, item)
    SELECT ${id}, ${part}::smallint, place - 1, item
    FROM unnest(${keys}::bigint[]) WITH ORDINALITY AS new (item, place)`);
}
