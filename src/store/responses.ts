/** Responses, the order of their items, their events and holds. */

import type { StoreHost } from "./host.ts";
import { deleteOrphans, putItems, referItems } from "./items.ts";
import { failedBody, incomplete, isAtWork } from "./response-state.ts";
import {
  eventRows,
  itemsOfParts,
  parts,
  readable,
  readTokens,
  type ResponseHoldRow,
  responseHoldOf,
  type ResponseRow,
  storedResponse,
} from "./rows.ts";
import { all, column, Given, run, sql, type StoreDatabase, type Work } from "./sql.ts";
import type {
  HeldCall,
  NewResponse,
  NumberedEvent,
  ResponseHold,
  ResponseItems,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "./types.ts";

export class Responses implements ResponseStore {
  readonly #database: StoreDatabase;
  readonly #host: StoreHost;

  constructor(database: StoreDatabase, host: StoreHost) {
    this.#database = database;
    this.#host = host;
  }

  async create(response: NewResponse): Promise<void> {
    const host = this.#host;
    const { id, owner, createdAt, previousResponseId, conversationId, body, input } = response;
    const process = isAtWork(body) ? host.processId : null;
    await this.#database.inTransaction(function* () {
      yield* host.lockItems(owner);
      yield* run(sql`INSERT INTO fermata.responses
        (id, owner, created_at, run, previous_response_id, conversation_id, body)
        VALUES (${id}, ${owner}, ${createdAt}, ${process}, ${previousResponseId},
          ${conversationId}, ${JSON.stringify(body)})`);
      const history = yield* copyHistory(response);
      yield* insertItems(id, parts.input, yield* referItems(owner, input, history));
    });
    if (process !== null) host.begins({ id, claim: 1 });
    host.keepLimits();
  }

  async update(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void> {
    const host = this.#host;
    const process = isAtWork(body) ? host.processId : null;
    // Tried again later, it is written only if no other process has taken it over meanwhile.
    const isNoOthers = host.isNoOthers(id);
    const write = async (): Promise<void> => {
      await this.#database.inTransaction(function* () {
        yield* host.lockItems(owner);
        const changes = yield* run(sql`UPDATE fermata.responses
          SET body = ${JSON.stringify(body)}, run = ${process}
          WHERE owner = ${owner} AND id = ${id}
            AND (run IS NULL OR run = ${host.processId}) AND ${isNoOthers}`);
        if (changes === 0) return;
        if (process === null) yield* deleteHold(id);
        yield* writeOutput(owner, id, output);
      });
      if (process === null) host.ends(id, true);
    };
    if (process === null) await host.writeEnd(id, write);
    else await write();
    host.changed(id);
  }

  async find(owner: string, id: string): Promise<StoredResponse | null> {
    const found = await this.#find(owner, id);
    if (found === null || found.run === null || found.run === this.#host.processId) return found;
    // Another process was at work on it, and may be gone since.
    await this.#host.forgetDead();
    return await this.#find(owner, id);
  }

  async #find(
    owner: string,
    id: string,
  ): Promise<(StoredResponse & { run: string | null }) | null> {
    const row = await this.#database.get<ResponseRow>(sql`SELECT id, run, previous_response_id,
        conversation_id, body
      FROM fermata.responses WHERE owner = ${owner} AND id = ${id}`);
    return row === undefined ? null : storedResponse(row);
  }

  async all(owner: string): Promise<StoredResponse[]> {
    const rows = await this.#database.all<ResponseRow>(sql`SELECT id, run, previous_response_id,
        conversation_id, body
      FROM fermata.responses WHERE owner = ${owner} ORDER BY created_at, ${this.#host.row}`);
    return rows.map(storedResponse);
  }

  async items(owner: string, id: string): Promise<ResponseItems | null> {
    const rows = await this.#database.all<{ part: number | null; body: string }>(sql`SELECT part,
        items.body AS body
      FROM fermata.responses
      LEFT JOIN fermata.response_items ON response_id = responses.id
      LEFT JOIN fermata.items ON items.key = item
      WHERE responses.owner = ${owner} AND responses.id = ${id} ORDER BY part, position`);
    return rows.length === 0 ? null : itemsOfParts(rows);
  }

  async delete(owner: string, id: string): Promise<boolean> {
    const { lockItems } = this.#host;
    return await this.#database.inTransaction(function* () {
      yield* lockItems(owner);
      const keys = yield* column<number>(sql`SELECT item FROM fermata.response_items
        WHERE response_id = ${id}`);
      const changes = yield* run(sql`DELETE FROM fermata.responses
        WHERE owner = ${owner} AND id = ${id}`);
      if (changes > 0) yield* deleteOrphans(keys);
      return changes > 0;
    });
  }

  async item(owner: string, id: string): Promise<StoredItem | null> {
    const [body] = await this.#database.column<string>(sql`SELECT body FROM fermata.items
      WHERE owner = ${owner} AND id = ${id}`);
    return body === undefined ? null : (JSON.parse(body) as StoredItem);
  }

  async updateItem(owner: string, item: StoredItem): Promise<void> {
    const { lockItems } = this.#host;
    await this.#database.inTransaction(function* () {
      yield* lockItems(owner);
      yield* putItems(owner, [item]);
    });
  }

  /** Nothing, where the response was deleted meanwhile, or is another process's. */
  async setHold({
    id,
    request,
    round,
    next,
    deadline,
  }: Omit<ResponseHold, "resumes">): Promise<void> {
    const { processId, isOwn, shared } = this.#host;
    await this.#database.run(sql`INSERT INTO fermata.response_holds
      (response_id, request, round, next, deadline)
      SELECT id, ${JSON.stringify(request)}, ${JSON.stringify(round)}, CAST(${next} AS integer),
        CAST(${deadline} AS double precision)
      FROM fermata.responses WHERE id = ${id} AND run = ${processId} AND ${isOwn(id)}
      ${shared}
      ON CONFLICT (response_id) DO UPDATE SET request = excluded.request,
        round = excluded.round, next = excluded.next, deadline = excluded.deadline,
        resumes = 0`);
  }

  async countResume(id: string, by: 1 | -1 = 1): Promise<void> {
    await this.#database.run(sql`UPDATE fermata.response_holds
      SET resumes = resumes + CAST(${by} AS integer) WHERE response_id = ${id}`);
  }

  async takeHolds(): Promise<ResponseHold[]> {
    const host = this.#host;
    if (!(await host.forgetDead())) return [];
    // Not the transaction's result, which is stored. Read before it is this process's: what cannot be read now is left to the next look.
    let taken: { hold: ResponseHold; claim: number }[] = [];
    await this.#database.inTransaction(function* () {
      const read: typeof taken = [];
      for (const { claim, ...row } of yield* host.leftHolds()) {
        const hold = yield* take(row, host);
        if (hold !== undefined) read.push({ hold, claim: claim + 1 });
      }
      taken = read;
    });
    for (const { hold, claim } of taken) host.begins({ id: hold.id, claim });
    return taken.map(({ hold }) => hold);
  }

  async setHeldCall(
    responseId: string,
    callId: string,
    state: unknown,
    from?: unknown,
  ): Promise<boolean> {
    const before = from === undefined ? null : JSON.stringify(from);
    const changes = await this.#database.run(sql`INSERT INTO fermata.held_calls AS known
      (holder, call_id, state) VALUES (${responseId}, ${callId}, ${JSON.stringify(state)})
      ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state
      WHERE CAST(${before} AS text) IS NULL OR known.state = ${before}`);
    return changes > 0;
  }

  async heldCall(owner: string, callId: string): Promise<HeldCall | null> {
    const row = await this.#database.get<{ holder: string; state: string }>(sql`SELECT holder, state
      FROM fermata.held_calls JOIN fermata.responses ON responses.id = holder
      WHERE owner = ${owner} AND call_id = ${callId}`);
    return row === undefined ? null : { responseId: row.holder, state: JSON.parse(row.state) };
  }

  /** Nothing, where the response was deleted while it was generated, or is another process's. */
  async appendEvents(id: string, events: readonly NumberedEvent[]): Promise<void> {
    const { processId, isOwn, shared } = this.#host;
    await this.#database.run(sql`INSERT INTO fermata.response_events
        (response_id, number, body, tokens)
      SELECT id, given_number, given_body, given_tokens
      FROM fermata.responses, ${eventRows(events)}
      WHERE id = ${id} AND (run IS NULL OR run = ${processId}) AND ${isOwn(id)}
      ${shared}
      ON CONFLICT (response_id, number) DO NOTHING`);
    this.#host.changed(id);
  }

  async eventTokens(id: string, from: number): Promise<number[]> {
    const columns = await this.#database.column<string | null>(sql`SELECT tokens
      FROM fermata.response_events WHERE response_id = ${id} AND number >= ${from}
      ORDER BY number`);
    return columns.flatMap((one) => readTokens(one) ?? []);
  }

  async events(owner: string, id: string, after = -1): Promise<unknown[]> {
    const bodies = await this.#database.column<string>(sql`SELECT response_events.body AS body
      FROM fermata.response_events JOIN fermata.responses ON responses.id = response_id
      WHERE owner = ${owner} AND id = ${id} AND number > ${after} ORDER BY number`);
    return bodies.map((body) => JSON.parse(body) as unknown);
  }
}

/** Undefined: it cannot be read, and has failed. */
function* take(row: ResponseHoldRow, host: StoreHost): Work<ResponseHold | undefined> {
  const items = yield* column<string>(sql`SELECT items.body FROM fermata.response_items
    JOIN fermata.items ON items.key = item WHERE response_id = ${row.id}`);
  const hold = responseHoldOf(row, items);
  if (hold === undefined) yield* fail(row, host);
  else
    yield* run(sql`UPDATE fermata.responses SET run = ${host.processId}${host.disowns}
      WHERE id = ${row.id}`);
  return hold;
}

/** What came before the response. @returns the keys of its items */
function* copyHistory({ id, previousResponseId, conversationId }: NewResponse): Work<number[]> {
  if (previousResponseId === null && conversationId === null) return [];
  return yield* column<number>(sql`
    INSERT INTO fermata.response_items (response_id, part, position, item)
    SELECT ${id}, 0, row_number() OVER (ORDER BY source, part, position) - 1, item FROM (
      SELECT 0 AS source, part, position, item FROM fermata.response_items
      WHERE response_id = ${previousResponseId}
      UNION ALL SELECT 1, 0, position, item FROM fermata.conversation_items
      WHERE conversation_id = ${conversationId}) AS earlier
    RETURNING item`);
}

/** Responses of a process that wait for their client belong to no process from now on. */
export function* leaveHolds(process: string): Work<void> {
  yield* run(sql`UPDATE fermata.responses SET run = NULL
    WHERE run = ${process} AND id IN (SELECT response_id FROM fermata.response_holds)`);
}

/** Fails everything that a process left unfinished, except what waits for its client. */
export function* failResponsesOf(process: string, host: StoreHost): Work<void> {
  yield* leaveHolds(process);
  const rows = yield* all<Unfinished>(sql`SELECT owner, id, body
    FROM fermata.responses WHERE run = ${process} ORDER BY owner, ${host.row} ${host.locked}`);
  for (const row of rows) yield* fail(row, host);
}

interface Unfinished {
  owner: string;
  id: string;
  body: string;
}

/** What cannot be read of it stays as it is. */
function* fail({ owner, id, body }: Unfinished, host: StoreHost): Work<void> {
  yield* host.lockItems(owner);
  yield* run(sql`UPDATE fermata.responses SET body = ${failedBody(body)}, run = NULL${host.disowns}
    WHERE id = ${id}`);
  yield* deleteHold(id);
  const bodies = yield* column<string>(sql`SELECT items.body FROM fermata.response_items
    JOIN fermata.items ON items.key = item
    WHERE response_id = ${id} AND part = ${parts.output} ORDER BY position`);
  const output = readable(() => bodies.map((text) => JSON.parse(text) as StoredItem));
  if (output !== undefined) yield* writeOutput(owner, id, output.map(incomplete));
}

function* deleteHold(id: string): Work<void> {
  yield* run(sql`DELETE FROM fermata.response_holds WHERE response_id = ${id}`);
}

function* writeOutput(owner: string, id: string, output: readonly StoredItem[]): Work<void> {
  yield* run(sql`DELETE FROM fermata.response_items
    WHERE response_id = ${id} AND part = ${parts.output}`);
  yield* insertItems(id, parts.output, yield* putItems(owner, output));
}

function* insertItems(id: string, part: number, keys: readonly number[]): Work<void> {
  if (keys.length === 0) return;
  const given = new Given(
    { at: "bigint", key: "bigint" },
    keys.map((key, at) => [at, key]),
  );
  yield* run(sql`INSERT INTO fermata.response_items (response_id, part, position, item)
    SELECT ${id}, CAST(${part} AS smallint), at, key FROM ${given}`);
}
