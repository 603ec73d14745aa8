/** Branched conversations, their messages and their runs. */

import type {
  BranchedConversation,
  BranchedMessage,
  BranchedRun,
  BranchStore,
  ConversationChange,
  InterruptedRun,
  NumberedEvent,
  RunHold,
} from "../types.ts";
import { type PostgresDatabase, sql, type Statements } from "./database.ts";
import type { StoreHost } from "./host.ts";
import {
  type ConversationRow,
  conversationOf,
  holdOf,
  type HoldRow,
  type MessageRow,
  messageOf,
  type RunRow,
  runOf,
  readTokens,
  writtenTokens,
} from "../rows.ts";

/** Of one look for runs that were left; the other processes take the rest. */
const maxTaken = 16;

export class PostgresBranches implements BranchStore {
  readonly lasts = true;
  readonly #database: PostgresDatabase;
  readonly #host: StoreHost;

  constructor(database: PostgresDatabase, host: StoreHost) {
    this.#database = database;
    this.#host = host;
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
    const rows = await this.#database.all<ConversationRow>(sql`SELECT *
      FROM fermata.branched_conversations WHERE owner = ${owner}
        AND (${before}::text IS NULL OR (updated_at, row) <
          (SELECT updated_at, row FROM fermata.branched_conversations WHERE id = ${before}))
      ORDER BY updated_at DESC, row DESC LIMIT ${limit}`);
    return rows.map(conversationOf);
  }

  async conversation(owner: string, id: string): Promise<BranchedConversation | null> {
    const row = await this.#database.get<ConversationRow>(sql`SELECT *
      FROM fermata.branched_conversations WHERE owner = ${owner} AND id = ${id}`);
    return row === undefined ? null : conversationOf(row);
  }

  async messages(owner: string, id: string): Promise<BranchedMessage[]> {
    const rows = await this.#database.all<MessageRow>(sql`SELECT messages.id, parent_id,
        messages.created_at, run_id, body
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
    return await write(this.#database, { owner, id }, change, updatedAt);
  }

  async deleteConversation(owner: string, id: string): Promise<boolean> {
    return await this.#database.inTransaction(async (on) => {
      const changes = await on.run(sql`DELETE FROM fermata.branched_conversations
        WHERE owner = ${owner} AND id = ${id}`);
      return changes > 0;
    });
  }

  async beginRun(
    owner: string,
    run: BranchedRun & Pick<RunHold, "request">,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void> {
    const { id: runId, conversationId, messageId, request } = run;
    await this.#database.inTransaction(async (on) => {
      for (const { id, parentId, createdAt, runId: writer, body } of messages)
        await on.run(sql`INSERT INTO fermata.branched_messages
          (id, conversation_id, parent_id, created_at, run_id, body)
          VALUES (${id}, ${conversationId}, ${parentId}, ${createdAt}, ${writer},
            ${JSON.stringify(body)})`);
      await on.run(sql`INSERT INTO fermata.branched_runs (id, conversation_id, message_id, process)
        VALUES (${runId}, ${conversationId}, ${messageId}, ${this.#host.processId})`);
      await on.run(sql`INSERT INTO fermata.branched_holds (run_id, request, round, resumes)
        VALUES (${runId}, ${JSON.stringify(request)}, 'null', 0)`);
      await write(on, { owner, id: conversationId }, change, messages.at(-1)!.createdAt);
    });
    this.#host.claims.set(runId, 1);
    this.#host.keepLimits();
  }

  async appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void> {
    const { processId, claims } = this.#host;
    await this.#database.run(sql`INSERT INTO fermata.branched_events (run_id, number, body, tokens)
      SELECT branched_runs.id, number, body, tokens
      FROM fermata.branched_runs, unnest(${events.map(({ number }) => number)}::integer[],
        ${events.map(({ body }) => body)}::text[],
        ${events.map(({ tokens }) => writtenTokens(tokens))}::text[]) AS new (number, body, tokens)
      WHERE branched_runs.id = ${runId} AND process = ${processId}
        AND claim = ${claims.of(runId)}
      FOR SHARE OF branched_runs
      ON CONFLICT (run_id, number) DO NOTHING`);
    this.#host.changed(runId);
  }

  async setRunHold(
    runId: string,
    { request, round }: Pick<RunHold, "request" | "round">,
  ): Promise<void> {
    await this.#database.inTransaction(async (on) => {
      if (!(await this.#isOwn(on, runId))) return;
      await on.run(sql`DELETE FROM fermata.held_calls WHERE holder = ${runId}`);
      await on.run(sql`INSERT INTO fermata.branched_holds (run_id, request, round, resumes)
        VALUES (${runId}, ${JSON.stringify(request)}, ${JSON.stringify(round)}, 0)
        ON CONFLICT (run_id) DO UPDATE SET round = excluded.round, resumes = 0`);
    });
  }

  async setHeldCall(runId: string, callId: string, state: unknown): Promise<void> {
    const { processId, claims } = this.#host;
    await this.#database.run(sql`INSERT INTO fermata.held_calls (holder, call_id, state)
      SELECT id, ${callId}, ${JSON.stringify(state)} FROM fermata.branched_runs
      WHERE id = ${runId} AND process = ${processId} AND claim = ${claims.of(runId)}
      FOR SHARE
      ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state`);
  }

  async countResume(runId: string, by: 1 | -1 = 1): Promise<void> {
    await this.#database
      .run(sql`UPDATE fermata.branched_holds SET resumes = resumes + ${by}::integer
      WHERE run_id = ${runId}`);
  }

  async endRun(
    runId: string,
    { id, body }: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    await this.#host.writeEnd(runId, async () => {
      await this.#database.inTransaction(async (on) => {
        // It was deleted meanwhile, or another process took it.
        if (!(await this.#isOwn(on, runId))) return;
        await on.run(sql`UPDATE fermata.branched_runs SET process = NULL WHERE id = ${runId}`);
        for (const event of events)
          await on.run(sql`INSERT INTO fermata.branched_events (run_id, number, body)
            VALUES (${runId}, ${event.number}, ${event.body})`);
        await on.run(sql`DELETE FROM fermata.branched_holds WHERE run_id = ${runId}`);
        await on.run(sql`UPDATE fermata.branched_messages SET body = ${JSON.stringify(body)}
          WHERE id = ${id}`);
      });
      this.#host.claims.end(runId);
    });
    this.#host.changed(runId);
  }

  async run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null> {
    const row = await this.#database.get<RunRow>(sql`SELECT started.id, conversation_id, message_id
      FROM fermata.branched_runs AS started
      JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
      WHERE owner = ${owner} AND conversation_id = ${conversationId} AND started.id = ${runId}`);
    return row === undefined ? null : runOf(row);
  }

  async runEvents(runId: string, after: number): Promise<NumberedEvent[]> {
    return await this.#database.all(sql`SELECT number, body FROM fermata.branched_events
      WHERE run_id = ${runId} AND number > ${after} ORDER BY number`);
  }

  async takeInterrupted(): Promise<InterruptedRun[]> {
    if (!(await this.#host.forgetDead())) return [];
    // A run that this process still has open, since it was taken for dead, ends first.
    const { processId, claims } = this.#host;
    const taken = await this.#database.inTransaction(
      async (on) =>
        await on.all<{ id: string; claim: number }>(sql`UPDATE fermata.branched_runs
          SET process = ${processId}, claim = claim + 1
          WHERE id IN (SELECT id FROM fermata.branched_runs WHERE process IS NOT NULL
            AND NOT EXISTS (SELECT FROM fermata.processes WHERE processes.id = process)
            AND NOT id = ANY(${claims.ids})
            FOR NO KEY UPDATE SKIP LOCKED LIMIT ${maxTaken})
          RETURNING id, claim`),
    );
    const runs: InterruptedRun[] = [];
    for (const { id, claim } of taken) {
      claims.set(id, claim);
      const run = await this.#interrupted(id);
      if (run !== null) runs.push(run);
    }
    return runs;
  }

  /** Null: it was deleted meanwhile. */
  async #interrupted(runId: string): Promise<InterruptedRun | null> {
    const on = this.#database;
    const row = await on.get<RunRow & { owner: string }>(sql`SELECT started.id, conversation_id,
        message_id, owner
      FROM fermata.branched_runs AS started
      JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
      WHERE started.id = ${runId}`);
    const message = await on.get<MessageRow>(sql`SELECT id, parent_id, created_at, run_id, body
      FROM fermata.branched_messages WHERE id = ${row?.message_id ?? null}`);
    if (row === undefined || message === undefined) return null;
    const events = await this.#allEvents(runId);
    const hold = await this.#hold(runId);
    return { ...runOf(row), owner: row.owner, message: messageOf(message), events, hold };
  }

  async #allEvents(runId: string): Promise<NumberedEvent[]> {
    const rows = await this.#database.all<{ number: number; body: string; tokens: string | null }>(
      sql`SELECT number, body, tokens FROM fermata.branched_events
        WHERE run_id = ${runId} ORDER BY number`,
    );
    return rows.map(({ tokens, ...event }) => ({ ...event, tokens: readTokens(tokens) }));
  }

  async #hold(runId: string): Promise<RunHold | null> {
    const row = await this.#database.get<HoldRow>(sql`SELECT request, round, resumes
      FROM fermata.branched_holds WHERE run_id = ${runId}`);
    if (row === undefined) return null;
    const calls = await this.#database.all<{ call_id: string; state: string }>(
      sql`SELECT call_id, state FROM fermata.held_calls WHERE holder = ${runId}`,
    );
    const states = calls.map(
      ({ call_id: id, state }) => [id, JSON.parse(state) as unknown] as const,
    );
    return holdOf(row, Object.fromEntries(states));
  }

  /** Until the transaction ends nobody else takes it. */
  async #isOwn(on: Statements, runId: string): Promise<boolean> {
    const { processId, claims } = this.#host;
    const [found] = await on.column<string>(sql`SELECT id FROM fermata.branched_runs
      WHERE id = ${runId} AND process = ${processId} AND claim = ${claims.of(runId)} FOR UPDATE`);
    return found !== undefined;
  }
}

async function write(
  on: Statements,
  { owner, id }: { owner: string; id: string },
  { title, leafId, settings }: ConversationChange,
  updatedAt: number,
): Promise<boolean> {
  const text = settings === undefined ? null : JSON.stringify(settings);
  const changes = await on.run(sql`UPDATE fermata.branched_conversations
    SET title = coalesce(${title ?? null}, title),
      leaf_id = CASE WHEN ${leafId !== undefined} THEN ${leafId ?? null} ELSE leaf_id END,
      settings = coalesce(${text}, settings), updated_at = ${updatedAt}
    WHERE owner = ${owner} AND id = ${id}`);
  return changes > 0;
}
