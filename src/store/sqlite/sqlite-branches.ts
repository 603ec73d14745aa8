/** Branched conversations in the SQLite file that holds the responses too. */

import type { Database } from "libsql";
import type {
  BranchedConversation,
  BranchedMessage,
  BranchedRun,
  BranchStore,
  ConversationChange,
  InterruptedRun,
  NumberedEvent,
} from "../types.ts";

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

/** What the file's owner does for its tables. */
interface BranchHost {
  /** Of this process among those that have the file open. */
  processId: string;
  /** Forgets those that are gone. Within a transaction, as `keepLimits`. */
  forgetDead(): void;
  /** Called with each run that begins. */
  keepLimits(): void;
  inTransaction<Result>(work: () => Result): Result;
}

const columns = "id, title, created_at, updated_at, leaf_id, settings";

export class SqliteBranches implements BranchStore {
  readonly #host: BranchHost;
  readonly #insertConversation;
  readonly #page;
  readonly #find;
  readonly #change;
  readonly #delete;
  readonly #insertMessage;
  readonly #messages;
  readonly #setBody;
  readonly #insertRun;
  readonly #endRun;
  readonly #findRun;
  readonly #insertEvent;
  readonly #events;
  readonly #interrupted;
  readonly #take;
  readonly #runMessage;

  constructor(database: Database, host: BranchHost) {
    this.#host = host;
    this.#insertConversation = database.prepare(
      `INSERT INTO branched_conversations (owner, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    // Several may change within one millisecond.
    this.#page = database.prepare(
      `SELECT ${columns} FROM branched_conversations WHERE owner = ?
       AND (? IS NULL OR (updated_at, rowid) <
            (SELECT updated_at, rowid FROM branched_conversations WHERE id = ?))
       ORDER BY updated_at DESC, rowid DESC LIMIT ?`,
    );
    this.#find = database.prepare(
      `SELECT ${columns} FROM branched_conversations WHERE owner = ? AND id = ?`,
    );
    this.#change = database.prepare(
      `UPDATE branched_conversations SET title = ?, leaf_id = ?, settings = ?, updated_at = ?
       WHERE owner = ? AND id = ?`,
    );
    this.#delete = database.prepare(
      "DELETE FROM branched_conversations WHERE owner = ? AND id = ?",
    );
    this.#insertMessage = database.prepare(
      `INSERT INTO branched_messages (id, conversation_id, parent_id, created_at, run_id, body)
       VALUES (?, ?, ?, ?, ?, ?)`,
    );
    this.#messages = database.prepare(
      `SELECT messages.id AS id, parent_id, messages.created_at AS created_at, run_id, body
       FROM branched_messages AS messages
       JOIN branched_conversations AS conversations ON conversations.id = conversation_id
       WHERE owner = ? AND conversation_id = ? ORDER BY position`,
    );
    this.#setBody = database.prepare("UPDATE branched_messages SET body = ? WHERE id = ?");
    this.#insertRun = database.prepare(
      "INSERT INTO branched_runs (id, conversation_id, message_id, process) VALUES (?, ?, ?, ?)",
    );
    this.#endRun = database.prepare(
      "UPDATE branched_runs SET process = NULL WHERE id = ? AND process = ?",
    );
    this.#findRun = database.prepare(
      `SELECT started.id AS id, conversation_id, message_id FROM branched_runs AS started
       JOIN branched_conversations AS conversations ON conversations.id = conversation_id
       WHERE owner = ? AND conversation_id = ? AND started.id = ?`,
    );
    this.#insertEvent = database.prepare(
      "INSERT INTO branched_events (run_id, number, body) VALUES (?, ?, ?)",
    );
    this.#events = database.prepare(
      "SELECT number, body FROM branched_events WHERE run_id = ? AND number > ? ORDER BY number",
    );
    this.#interrupted = database.prepare(
      `SELECT started.id AS id, conversation_id, message_id, owner FROM branched_runs AS started
       JOIN branched_conversations AS conversations ON conversations.id = conversation_id
       WHERE process IS NOT NULL AND process NOT IN (SELECT id FROM runs)`,
    );
    this.#take = database.prepare("UPDATE branched_runs SET process = ? WHERE id = ?");
    this.#runMessage = database.prepare(
      "SELECT id, parent_id, created_at, run_id, body FROM branched_messages WHERE id = ?",
    );
  }

  async createConversation(owner: string, conversation: BranchedConversation): Promise<void> {
    const { id, title, createdAt, updatedAt, leafId, settings } = conversation;
    const text = JSON.stringify(settings);
    this.#insertConversation.run(owner, id, title, createdAt, updatedAt, leafId, text);
  }

  async conversations(
    owner: string,
    { limit, before }: { limit: number; before: string | null },
  ): Promise<BranchedConversation[]> {
    const rows = this.#page.all(owner, before, before, limit) as ConversationRow[];
    return rows.map(conversationOf);
  }

  async conversation(owner: string, id: string): Promise<BranchedConversation | null> {
    const row = this.#find.get(owner, id) as ConversationRow | undefined;
    return row === undefined ? null : conversationOf(row);
  }

  async messages(owner: string, id: string): Promise<BranchedMessage[]> {
    return (this.#messages.all(owner, id) as MessageRow[]).map(messageOf);
  }

  async changeConversation(
    owner: string,
    id: string,
    change: ConversationChange,
    updatedAt: number,
  ): Promise<boolean> {
    return this.#host.inTransaction(() => this.#write(owner, id, change, updatedAt));
  }

  async deleteConversation(owner: string, id: string): Promise<boolean> {
    return this.#host.inTransaction(() => this.#delete.run(owner, id).changes > 0);
  }

  async beginRun(
    owner: string,
    run: BranchedRun,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void> {
    const { id: runId, conversationId, messageId } = run;
    this.#host.inTransaction(() => {
      for (const { id, parentId, createdAt, runId: writer, body } of messages) {
        const text = JSON.stringify(body);
        this.#insertMessage.run(id, conversationId, parentId, createdAt, writer, text);
      }
      this.#insertRun.run(runId, conversationId, messageId, this.#host.processId);
      this.#write(owner, conversationId, change, messages.at(-1)!.createdAt);
      this.#host.keepLimits();
    });
  }

  async appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void> {
    for (const { number, body } of events) this.#insertEvent.run(runId, number, body);
  }

  async endRun(
    runId: string,
    { id, body }: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    this.#host.inTransaction(() => {
      // It was deleted meanwhile, or another process took it.
      if (this.#endRun.run(runId, this.#host.processId).changes === 0) return;
      for (const event of events) this.#insertEvent.run(runId, event.number, event.body);
      this.#setBody.run(JSON.stringify(body), id);
    });
  }

  async run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null> {
    const row = this.#findRun.get(owner, conversationId, runId) as RunRow | undefined;
    return row === undefined ? null : runOf(row);
  }

  async runEvents(runId: string, after: number): Promise<NumberedEvent[]> {
    return (this.#events.all(runId, after) as NumberedEvent[]).map(({ number, body }) => ({
      number,
      body,
    }));
  }

  async takeInterrupted(): Promise<InterruptedRun[]> {
    return this.#host.inTransaction(() => {
      this.#host.forgetDead();
      const rows = this.#interrupted.all() as (RunRow & { owner: string })[];
      return rows.map((row) => {
        this.#take.run(this.#host.processId, row.id);
        const message = messageOf(this.#runMessage.get(row.message_id) as MessageRow);
        const events = this.#events.all(row.id, 0) as NumberedEvent[];
        return { ...runOf(row), owner: row.owner, message, events };
      });
    });
  }

  /** Within a transaction. */
  #write(owner: string, id: string, change: ConversationChange, updatedAt: number): boolean {
    const row = this.#find.get(owner, id) as ConversationRow | undefined;
    if (row === undefined) return false;
    const { title = row.title, leafId = row.leaf_id, settings } = change;
    const text = settings === undefined ? row.settings : JSON.stringify(settings);
    this.#change.run(title, leafId, text, updatedAt, owner, id);
    return true;
  }
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
