/** Branched conversations in the SQLite file that holds the responses too. */

import {
  beginning,
  CommonBranches,
  type ConversationRow,
  conversationOf,
  ending,
  holding,
  reading,
} from "../common-branches.ts";
import { writtenTokens } from "../rows.ts";
import { sql } from "../sql.ts";
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
import type { StoreDatabase } from "./database.ts";
import type { StoreHost } from "../host.ts";

export class SqliteBranches extends CommonBranches implements BranchStore {
  /** It is a file. */
  readonly lasts: boolean;
  readonly #database: StoreDatabase;
  readonly #host: StoreHost;

  constructor(database: StoreDatabase, host: StoreHost, lasts: boolean) {
    super(database);
    this.#database = database;
    this.#host = host;
    this.lasts = lasts;
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

  async deleteConversation(owner: string, id: string): Promise<boolean> {
    return (
      this.#database.run(
        sql`DELETE FROM branched_conversations WHERE owner = ${owner} AND id = ${id}`,
      ) > 0
    );
  }

  async beginRun(
    owner: string,
    run: BranchedRun & Pick<RunHold, "request">,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void> {
    const { processId, keepLimits } = this.#host;
    this.#database.inTransaction(() => {
      for (const statement of beginning(owner, { ...run, processId }, messages, change))
        this.#database.run(statement);
      keepLimits();
    });
  }

  async appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void> {
    for (const { number, body, tokens } of events)
      this.#database.run(sql`INSERT INTO branched_events (run_id, number, body, tokens)
        VALUES (${runId}, ${number}, ${body}, ${writtenTokens(tokens)})`);
  }

  async setRunHold(runId: string, hold: Pick<RunHold, "request" | "round">): Promise<void> {
    this.#database.inTransaction(() => {
      for (const statement of holding(runId, hold)) this.#database.run(statement);
    });
  }

  async setHeldCall(runId: string, callId: string, state: unknown): Promise<boolean> {
    const changes = this.#database.run(sql`INSERT INTO held_calls (holder, call_id, state)
      SELECT id, ${callId}, ${JSON.stringify(state)} FROM branched_runs
      WHERE id = ${runId} AND process = ${this.#host.processId}
       ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state`);
    return changes > 0;
  }

  /** One process at a time has the file. */
  async isElsewhere(): Promise<boolean> {
    return false;
  }

  async endRun(
    runId: string,
    message: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    await this.#host.writeEnd(runId, () => {
      const own = this.#database.get(sql`SELECT 1 FROM branched_runs
        WHERE id = ${runId} AND process = ${this.#host.processId}`);
      // It was deleted meanwhile, or another process took it.
      if (own === undefined) return;
      for (const statement of ending(runId, message, events)) this.#database.run(statement);
    });
  }

  async takeInterrupted(): Promise<InterruptedRun[]> {
    return this.#database.inTransaction(() => {
      this.#host.forgetDead();
      const taken = this.#database.column<string>(sql`UPDATE branched_runs
        SET process = ${this.#host.processId}
        WHERE process IS NOT NULL AND process NOT IN (SELECT id FROM runs) RETURNING id`);
      return taken.map((id) => this.#read(id));
    });
  }

  #read(runId: string): InterruptedRun {
    const work = reading(runId);
    let step = work.next();
    while (step.done !== true) step = work.next(this.#database.all(step.value));
    return step.value;
  }
}
