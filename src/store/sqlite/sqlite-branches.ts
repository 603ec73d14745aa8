/** Branched conversations in the SQLite file that holds the responses too. */

import { sql, type StoreDatabase } from "./database.ts";
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

export class SqliteBranches implements BranchStore {
  /** It is a file. */
  readonly lasts: boolean;
  readonly #database: StoreDatabase;
  readonly #host: StoreHost;

  constructor(database: StoreDatabase, host: StoreHost, lasts: boolean) {
    this.#database = database;
    this.#host = host;
    this.lasts = lasts;
  }

  async createConversation(owner: string, conversation: BranchedConversation): Promise<void> {
    const { id, title, createdAt, updatedAt, leafId, settings } = conversation;
    const text = JSON.stringify(settings);
    this.#database
      .run(sql`INSERT INTO branched_conversations (owner, id, title, created_at, updated_at, leaf_id, settings)
      VALUES (${owner}, ${id}, ${title}, ${createdAt}, ${updatedAt}, ${leafId}, ${text})`);
  }

  async conversations(
    owner: string,
    { limit, before }: { limit: number; before: string | null },
  ): Promise<BranchedConversation[]> {
    // Several may change within one millisecond.
    const rows = this.#database.all<ConversationRow>(sql`SELECT * FROM branched_conversations
      WHERE owner = ${owner}
       AND (${before} IS NULL OR (updated_at, rowid) <
            (SELECT updated_at, rowid FROM branched_conversations WHERE id = ${before}))
       ORDER BY updated_at DESC, rowid DESC LIMIT ${limit}`);
    return rows.map(conversationOf);
  }

  async conversation(owner: string, id: string): Promise<BranchedConversation | null> {
    const row = this.#find(owner, id);
    return row === undefined ? null : conversationOf(row);
  }

  async messages(owner: string, id: string): Promise<BranchedMessage[]> {
    return this.#database
      .all<MessageRow>(sql`SELECT messages.id AS id, parent_id, messages.created_at AS created_at, run_id, body
       FROM branched_messages AS messages
       JOIN branched_conversations AS conversations ON conversations.id = conversation_id
       WHERE owner = ${owner} AND conversation_id = ${id} ORDER BY position`)
      .map(messageOf);
  }

  async changeConversation(
    owner: string,
    id: string,
    change: ConversationChange,
    updatedAt: number,
  ): Promise<boolean> {
    return this.#database.inTransaction(() => this.#write(owner, id, change, updatedAt));
  }

  async deleteConversation(owner: string, id: string): Promise<boolean> {
    return this.#database.inTransaction(
      () =>
        this.#database.run(
          sql`DELETE FROM branched_conversations WHERE owner = ${owner} AND id = ${id}`,
        ).changes > 0,
    );
  }

  async beginRun(
    owner: string,
    run: BranchedRun & Pick<RunHold, "request">,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void> {
    const { id: runId, conversationId, messageId, request } = run;
    this.#database.inTransaction(() => {
      for (const { id, parentId, createdAt, runId: writer, body } of messages) {
        const text = JSON.stringify(body);
        this.#database
          .run(sql`INSERT INTO branched_messages (id, conversation_id, parent_id, created_at, run_id, body)
       VALUES (${id}, ${conversationId}, ${parentId}, ${createdAt}, ${writer}, ${text})`);
      }
      this.#database.run(sql`INSERT INTO branched_runs (id, conversation_id, message_id, process)
        VALUES (${runId}, ${conversationId}, ${messageId}, ${this.#host.processId})`);
      this.#database.run(sql`INSERT INTO branched_holds (run_id, request, round, resumes)
        VALUES (${runId}, ${JSON.stringify(request)}, 'null', 0)`);
      this.#write(owner, conversationId, change, messages.at(-1)!.createdAt);
      this.#host.keepLimits();
    });
  }

  async appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void> {
    for (const event of events) this.#insertEvent(runId, event);
  }

  async setRunHold(
    runId: string,
    { request, round }: Pick<RunHold, "request" | "round">,
  ): Promise<void> {
    const text = JSON.stringify(round);
    this.#database.inTransaction(() => {
      this.#host.heldCalls.delete(runId);
      this.#database.run(sql`INSERT INTO branched_holds (run_id, request, round, resumes)
        VALUES (${runId}, ${JSON.stringify(request)}, ${text}, 0)
         ON CONFLICT (run_id) DO UPDATE SET round = excluded.round, resumes = 0`);
    });
  }

  async setHeldCall(runId: string, callId: string, state: unknown): Promise<void> {
    this.#host.heldCalls.set(runId, callId, state);
  }

  async countResume(runId: string, by: 1 | -1 = 1): Promise<void> {
    this.#database.run(sql`UPDATE branched_holds SET resumes = resumes + ${by}
      WHERE run_id = ${runId}`);
  }

  async endRun(
    runId: string,
    { id, body }: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    this.#host.writeEnd(runId, () => {
      // It was deleted meanwhile, or another process took it.
      if (
        this.#database.run(sql`UPDATE branched_runs SET process = NULL
          WHERE id = ${runId} AND process = ${this.#host.processId}`).changes === 0
      )
        return;
      for (const event of events) this.#insertEvent(runId, event);
      this.#database.run(sql`DELETE FROM branched_holds WHERE run_id = ${runId}`);
      this.#database.run(sql`UPDATE branched_messages SET body = ${JSON.stringify(body)}
        WHERE id = ${id}`);
    });
  }

  async run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null> {
    const row = this.#database.get<RunRow>(sql`SELECT started.id AS id, conversation_id, message_id
      FROM branched_runs AS started
       JOIN branched_conversations AS conversations ON conversations.id = conversation_id
       WHERE owner = ${owner} AND conversation_id = ${conversationId} AND started.id = ${runId}`);
    return row === undefined ? null : runOf(row);
  }

  async runEvents(runId: string, after: number): Promise<NumberedEvent[]> {
    return this.#eventsAfter(runId, after);
  }

  async takeInterrupted(): Promise<InterruptedRun[]> {
    return this.#database.inTransaction(() => {
      this.#host.forgetDead();
      const rows = this.#database.all<
        RunRow & { owner: string }
      >(sql`SELECT started.id AS id, conversation_id, message_id, owner FROM branched_runs AS started
       JOIN branched_conversations AS conversations ON conversations.id = conversation_id
       WHERE process IS NOT NULL AND process NOT IN (SELECT id FROM runs)`);
      return rows.map((row) => {
        this.#database.run(sql`UPDATE branched_runs SET process = ${this.#host.processId}
          WHERE id = ${row.id}`);
        const message = messageOf(
          this.#database
            .get<MessageRow>(sql`SELECT id, parent_id, created_at, run_id, body FROM branched_messages
            WHERE id = ${row.message_id}`)!,
        );
        const events = this.#allEvents(row.id);
        return { ...runOf(row), owner: row.owner, message, events, hold: this.#hold(row.id) };
      });
    });
  }

  #hold(runId: string): RunHold | null {
    const row = this.#database.get<HoldRow>(sql`SELECT request, round, resumes FROM branched_holds
      WHERE run_id = ${runId}`);
    return row === undefined ? null : holdOf(row, this.#host.heldCalls.of(runId));
  }

  #find(owner: string, id: string): ConversationRow | undefined {
    return this.#database.get(sql`SELECT * FROM branched_conversations
      WHERE owner = ${owner} AND id = ${id}`);
  }

  #insertEvent(runId: string, { number, body, tokens }: NumberedEvent): void {
    this.#database.run(sql`INSERT INTO branched_events (run_id, number, body, tokens)
      VALUES (${runId}, ${number}, ${body}, ${writtenTokens(tokens)})`);
  }

  #allEvents(runId: string): NumberedEvent[] {
    return this.#database
      .all<{ number: number; body: string; tokens: string | null }>(sql`SELECT number, body, tokens
        FROM branched_events WHERE run_id = ${runId} ORDER BY number`)
      .map(({ tokens, ...event }) => ({ ...event, tokens: readTokens(tokens) }));
  }

  #eventsAfter(runId: string, after: number): NumberedEvent[] {
    return this.#database.all(sql`SELECT number, body FROM branched_events
      WHERE run_id = ${runId} AND number > ${after} ORDER BY number`);
  }

  /** Within a transaction. */
  #write(owner: string, id: string, change: ConversationChange, updatedAt: number): boolean {
    const row = this.#find(owner, id);
    if (row === undefined) return false;
    const { title = row.title, leafId = row.leaf_id, settings } = change;
    const text = settings === undefined ? row.settings : JSON.stringify(settings);
    this.#database
      .run(sql`UPDATE branched_conversations SET title = ${title}, leaf_id = ${leafId}, settings = ${text}, updated_at = ${updatedAt}
       WHERE owner = ${owner} AND id = ${id}`);
    return true;
  }
}
