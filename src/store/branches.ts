/** Branched conversations, their messages and their runs. */

import type { StoreHost, Taken } from "./host.ts";
import { eventRows, readable, readTokens } from "./rows.ts";
import {
  all,
  get,
  type Query,
  run,
  sql,
  type Statements,
  type StoreDatabase,
  type Work,
} from "./sql.ts";
import type {
  BranchedConversation,
  BranchedMessage,
  BranchedRun,
  BranchStore,
  ConversationChange,
  InterruptedRun,
  NumberedEvent,
  RunHold,
} from "./types.ts";

interface ConversationRow {
  id: string;
  title: string;
  created_at: number;
  updated_at: number;
  leaf_id: string | null;
  settings: string;
}

interface MessageRow {
  id: string;
  parent_id: string | null;
  created_at: number;
  run_id: string | null;
  body: string;
}

interface RunRow {
  id: string;
  conversation_id: string;
  message_id: string;
}

interface EventRow {
  number: number;
  body: string;
  tokens: string | null;
}

interface HoldRow {
  request: string;
  round: string;
  resumes: number;
}

interface CallRow {
  call_id: string;
  state: string;
}

// A state is written as JSON.stringify writes it, and begins with what the call has come to.
const asked = '{"at":"asked"';
const ended = '{"at":"ended"';

export class Branches implements BranchStore {
  readonly #database: StoreDatabase;
  readonly #host: StoreHost;

  constructor(database: StoreDatabase, host: StoreHost) {
    this.#database = database;
    this.#host = host;
  }

  get lasts(): boolean {
    return this.#host.lasts;
  }

  async createConversation(owner: string, conversation: BranchedConversation): Promise<void> {
    const { id, title, createdAt, updatedAt, leafId, settings } = conversation;
    // A repetition: its first answer was lost with the connection.
    await this.#database.run(sql`INSERT INTO fermata.branched_conversations
      (owner, id, title, created_at, updated_at, leaf_id, settings)
      VALUES (${owner}, ${id}, ${title}, ${createdAt}, ${updatedAt}, ${leafId},
        ${JSON.stringify(settings)})
      ON CONFLICT (id) DO NOTHING`);
  }

  async conversations(
    owner: string,
    { limit, before }: { limit: number; before: string | null },
  ): Promise<BranchedConversation[]> {
    // Several may change within one millisecond.
    const { row } = this.#host;
    const rows = await this.#database.all<ConversationRow>(sql`SELECT *
      FROM fermata.branched_conversations WHERE owner = ${owner}
        AND (CAST(${before} AS text) IS NULL OR (updated_at, ${row}) <
          (SELECT updated_at, ${row} FROM fermata.branched_conversations WHERE id = ${before}))
      ORDER BY updated_at DESC, ${row} DESC LIMIT ${limit}`);
    return rows.map(conversationOf);
  }

  async conversation(owner: string, id: string): Promise<BranchedConversation | null> {
    const row = await this.#database.get<ConversationRow>(sql`SELECT *
      FROM fermata.branched_conversations WHERE owner = ${owner} AND id = ${id}`);
    return row === undefined ? null : conversationOf(row);
  }

  async messages(owner: string, id: string): Promise<BranchedMessage[]> {
    const rows = await this.#database.all<MessageRow>(sql`SELECT messages.id AS id, parent_id,
        messages.created_at AS created_at, run_id, body
      FROM fermata.branched_messages AS messages
      JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
      WHERE owner = ${owner} AND conversation_id = ${id} ORDER BY position`);
    return rows.map(messageOf);
  }

  async changeConversation(
    owner: string,
    id: string,
    change: ConversationChange,
    updatedAt: number,
  ): Promise<boolean> {
    return (await this.#database.run(changing(owner, id, change, updatedAt))) > 0;
  }

  async deleteConversation(owner: string, id: string): Promise<boolean> {
    return await this.#database.inTransaction(function* () {
      const changes = yield* run(sql`DELETE FROM fermata.branched_conversations
        WHERE owner = ${owner} AND id = ${id}`);
      return changes > 0;
    });
  }

  async beginRun(
    owner: string,
    { id: runId, conversationId, messageId, request }: BranchedRun & Pick<RunHold, "request">,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void> {
    const { processId } = this.#host;
    await this.#database.inTransaction(function* () {
      for (const { id, parentId, createdAt, runId: writer, body } of messages)
        yield* run(sql`INSERT INTO fermata.branched_messages
          (id, conversation_id, parent_id, created_at, run_id, body)
          VALUES (${id}, ${conversationId}, ${parentId}, ${createdAt}, ${writer},
            ${JSON.stringify(body)})`);
      yield* run(sql`INSERT INTO fermata.branched_runs (id, conversation_id, message_id, process)
        VALUES (${runId}, ${conversationId}, ${messageId}, ${processId})`);
      yield* run(sql`INSERT INTO fermata.branched_holds (run_id, request, round, resumes)
        VALUES (${runId}, ${JSON.stringify(request)}, 'null', 0)`);
      yield* run(changing(owner, conversationId, change, messages.at(-1)!.createdAt));
    });
    this.#host.begins({ id: runId, claim: 1 });
    this.#host.keepLimits();
  }

  async appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void> {
    const { processId, isOwn, shared } = this.#host;
    await this.#database.run(sql`INSERT INTO fermata.branched_events (run_id, number, body, tokens)
      SELECT id, given_number, given_body, given_tokens
      FROM fermata.branched_runs, ${eventRows(events)}
      WHERE id = ${runId} AND process = ${processId} AND ${isOwn(runId)}
      ${shared}
      ON CONFLICT (run_id, number) DO NOTHING`);
    this.#host.changed(runId);
  }

  async setRunHold(
    runId: string,
    { request, round }: Pick<RunHold, "request" | "round">,
  ): Promise<void> {
    const host = this.#host;
    await this.#database.inTransaction(function* () {
      if (!(yield* isOwn(runId, host))) return;
      yield* run(sql`DELETE FROM fermata.held_calls WHERE holder = ${runId}`);
      yield* run(sql`INSERT INTO fermata.branched_holds (run_id, request, round, resumes)
        VALUES (${runId}, ${JSON.stringify(request)}, ${JSON.stringify(round)}, 0)
        ON CONFLICT (run_id) DO UPDATE SET round = excluded.round, resumes = 0`);
    });
  }

  async setHeldCall(runId: string, callId: string, state: unknown): Promise<boolean> {
    const host = this.#host;
    const changes = await this.#database
      .run(sql`INSERT INTO fermata.held_calls (holder, call_id, state)
      SELECT id, ${callId}, ${JSON.stringify(state)} FROM fermata.branched_runs
      WHERE id = ${runId} AND process = ${host.processId} AND ${host.isOwn(runId)}
      ${host.shared}
      ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state`);
    return changes > 0;
  }

  async isElsewhere(runId: string): Promise<boolean> {
    const { processId, isOwn } = this.#host;
    const [found] = await this.#database.column<string>(sql`SELECT id FROM fermata.branched_runs
      WHERE id = ${runId} AND (process <> ${processId} OR NOT ${isOwn(runId)})`);
    return found !== undefined;
  }

  async callOfRun(owner: string, callId: string): Promise<"asked" | "past" | null> {
    return await callOfRun(this.#database, owner, callId);
  }

  async countResume(runId: string, by: 1 | -1 = 1): Promise<void> {
    await this.#database.run(sql`UPDATE fermata.branched_holds
      SET resumes = resumes + CAST(${by} AS integer) WHERE run_id = ${runId}`);
  }

  async endRun(
    runId: string,
    { id, body }: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    const host = this.#host;
    await host.writeEnd(runId, async () => {
      await this.#database.inTransaction(function* () {
        // It was deleted meanwhile, or another process took it.
        if (!(yield* isOwn(runId, host))) return;
        yield* run(sql`UPDATE fermata.branched_runs SET process = NULL WHERE id = ${runId}`);
        yield* run(sql`INSERT INTO fermata.branched_events (run_id, number, body)
          SELECT ${runId}, given_number, given_body FROM ${eventRows(events)}`);
        yield* run(sql`DELETE FROM fermata.branched_holds WHERE run_id = ${runId}`);
        yield* run(sql`UPDATE fermata.branched_messages SET body = ${JSON.stringify(body)}
          WHERE id = ${id}`);
      });
      host.ends(runId);
    });
    host.changed(runId);
  }

  async run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null> {
    const row = await this.#database.get<RunRow>(sql`SELECT started.id AS id, conversation_id,
        message_id
      FROM fermata.branched_runs AS started
      JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
      WHERE owner = ${owner} AND conversation_id = ${conversationId} AND started.id = ${runId}`);
    return row === undefined ? null : runOf(row);
  }

  async runEvents(runId: string, after: number): Promise<NumberedEvent[]> {
    return await this.#database.all<NumberedEvent>(sql`SELECT number, body
      FROM fermata.branched_events
      WHERE run_id = ${runId} AND number > ${after} ORDER BY number`);
  }

  async takeInterrupted(): Promise<InterruptedRun[]> {
    const host = this.#host;
    if (!(await host.forgetDead())) return [];
    // Read in the same transaction: what cannot be read now is left to the next look. Not its result, which is stored.
    let taken: (Taken & { run: InterruptedRun })[] = [];
    await this.#database.inTransaction(function* () {
      const read: typeof taken = [];
      for (const work of yield* host.takeRuns())
        read.push({ ...work, run: yield* readInterrupted(work.id) });
      taken = read;
    });
    for (const work of taken) host.begins(work);
    return taken.map((work) => work.run);
  }
}

/** Until the transaction ends nobody else takes it. */
function* isOwn(runId: string, host: StoreHost): Work<boolean> {
  const found = yield* get(sql`SELECT id FROM fermata.branched_runs
    WHERE id = ${runId} AND process = ${host.processId} AND ${host.isOwn(runId)} ${host.locked}`);
  return found !== undefined;
}

/** See `BranchStore`. @param decided the id of a question that is over, though the run could not write it down */
export async function callOfRun(
  on: Statements,
  owner: string,
  callId: string,
  decided?: string,
): Promise<"asked" | "past" | null> {
  const rows = await on.all<{ key: string; state: string }>(sql`SELECT call_id AS key,
      CASE WHEN substr(state, 1, ${asked.length}) = ${asked} THEN state
        ELSE substr(state, 1, ${ended.length}) END AS state
    FROM fermata.held_calls
    JOIN fermata.branched_runs AS started ON started.id = holder AND process IS NOT NULL
    JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
    WHERE owner = ${owner}`);
  const states = new Map(rows.map(({ key, state }) => [key, state]));
  const own = rows.filter(
    ({ key }) =>
      (key === callId || key.endsWith(`/${callId}`)) &&
      delegationsAbove(key).every((above) => states.get(above) !== ended),
  );
  if (own.length === 0) return null;
  const isAsked = own.some(
    ({ state }) =>
      state.startsWith(asked) &&
      (decided === undefined || (JSON.parse(state) as { askingId?: string }).askingId !== decided),
  );
  return isAsked ? "asked" : "past";
}

/** The keys of the delegations that a sub-agent's call is below: see `keyBelow`. */
function delegationsAbove(key: string): string[] {
  const parts = key.split("/");
  return parts
    .flatMap((_, index) => (index % 2 === 0 ? [parts.slice(0, index + 1).join("/")] : []))
    .slice(0, -1);
}

function* readInterrupted(runId: string): Work<InterruptedRun> {
  const [run] = yield* all<RunRow & { owner: string }>(sql`SELECT started.id AS id,
      conversation_id, message_id, owner
    FROM fermata.branched_runs AS started
    JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
    WHERE started.id = ${runId}`);
  const events = yield* all<EventRow>(sql`SELECT number, body, tokens FROM fermata.branched_events
    WHERE run_id = ${runId} ORDER BY number`);
  const hold = yield* get<HoldRow>(sql`SELECT request, round, resumes FROM fermata.branched_holds
    WHERE run_id = ${runId}`);
  const calls = yield* all<CallRow>(sql`SELECT call_id, state FROM fermata.held_calls
    WHERE holder = ${runId}`);
  const known = { ...runOf(run!), owner: run!.owner };
  const goesOn = readable(() => ({
    events: events.map(({ tokens, ...event }) => ({ ...event, tokens: readTokens(tokens) })),
    hold: hold === undefined ? null : holdOf(hold, calls),
  }));
  // It ends with what was said.
  const ends = { events: events.map(({ number, body }) => ({ number, body })), hold: null };
  return { ...known, ...(goesOn ?? ends) };
}

function changing(
  owner: string,
  id: string,
  { title, leafId, settings }: ConversationChange,
  updatedAt: number,
): Query {
  const text = settings === undefined ? null : JSON.stringify(settings);
  return sql`UPDATE fermata.branched_conversations
    SET title = coalesce(${title ?? null}, title),
      leaf_id = CASE WHEN ${leafId === undefined ? "stays" : "changes"} = 'stays' THEN leaf_id
        ELSE ${leafId ?? null} END,
      settings = coalesce(${text}, settings), updated_at = ${updatedAt}
    WHERE owner = ${owner} AND id = ${id}`;
}

function conversationOf(row: ConversationRow): BranchedConversation {
  return {
    id: row.id,
    title: row.title,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    leafId: row.leaf_id,
    settings: JSON.parse(row.settings) as Record<string, unknown>,
  };
}

function holdOf({ request, round, resumes }: HoldRow, calls: readonly CallRow[]): RunHold {
  return {
    request: JSON.parse(request),
    round: JSON.parse(round),
    calls: Object.fromEntries(calls.map(({ call_id: id, state }) => [id, JSON.parse(state)])),
    resumes,
  };
}

function messageOf(row: MessageRow): BranchedMessage {
  return {
    id: row.id,
    parentId: row.parent_id,
    createdAt: row.created_at,
    runId: row.run_id,
    body: JSON.parse(row.body) as Record<string, unknown>,
  };
}

function runOf(row: RunRow): BranchedRun {
  return { id: row.id, conversationId: row.conversation_id, messageId: row.message_id };
}
