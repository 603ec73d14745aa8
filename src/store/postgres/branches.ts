/** Branched conversations, their messages and their runs. */

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
import type { PostgresDatabase, Statements } from "./database.ts";
import type { PostgresHost } from "./host.ts";

/** Of one look for runs that were left; the other processes take the rest. */
const maxTaken = 16;

export class PostgresBranches extends CommonBranches implements BranchStore {
  readonly lasts = true;
  readonly #database: PostgresDatabase;
  readonly #host: PostgresHost;

  constructor(database: PostgresDatabase, host: PostgresHost) {
    super(database);
    this.#database = database;
    this.#host = host;
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
    const { processId, claims } = this.#host;
    await this.#database.inTransaction(async (on) => {
      for (const statement of beginning(owner, { ...run, processId }, messages, change))
        await on.run(statement);
    });
    claims.set(run.id, 1);
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

  async setRunHold(runId: string, hold: Pick<RunHold, "request" | "round">): Promise<void> {
    await this.#database.inTransaction(async (on) => {
      if (!(await this.#isOwn(on, runId))) return;
      for (const statement of holding(runId, hold)) await on.run(statement);
    });
  }

  async setHeldCall(runId: string, callId: string, state: unknown): Promise<boolean> {
    const { processId, claims } = this.#host;
    const changes = await this.#database
      .run(sql`INSERT INTO fermata.held_calls (holder, call_id, state)
      SELECT id, ${callId}, ${JSON.stringify(state)} FROM fermata.branched_runs
      WHERE id = ${runId} AND process = ${processId} AND claim = ${claims.of(runId)}
      FOR SHARE
      ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state`);
    return changes > 0;
  }

  async isElsewhere(runId: string): Promise<boolean> {
    const { processId, claims } = this.#host;
    const [found] = await this.#database.column<string>(sql`SELECT id FROM fermata.branched_runs
      WHERE id = ${runId} AND (process <> ${processId} OR claim <> ${claims.of(runId)})`);
    return found !== undefined;
  }

  async endRun(
    runId: string,
    message: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    await this.#host.writeEnd(runId, async () => {
      await this.#database.inTransaction(async (on) => {
        // It was deleted meanwhile, or another process took it.
        if (!(await this.#isOwn(on, runId))) return;
        for (const statement of ending(runId, message, events)) await on.run(statement);
      });
      this.#host.claims.end(runId);
    });
    this.#host.changed(runId);
  }

  async takeInterrupted(): Promise<InterruptedRun[]> {
    if (!(await this.#host.forgetDead())) return [];
    // A run that this process still has open, since it was taken for dead, ends first.
    const { processId, claims } = this.#host;
    // Read in the same transaction: what cannot be read now is left to the next look.
    let taken: { run: InterruptedRun; claim: number }[] = [];
    await this.#database.inTransaction(async (on) => {
      const rows = await on.all<{ id: string; claim: number }>(sql`UPDATE fermata.branched_runs
        SET process = ${processId}, claim = claim + 1
        WHERE id IN (SELECT id FROM fermata.branched_runs WHERE process IS NOT NULL
          AND NOT EXISTS (SELECT FROM fermata.processes WHERE processes.id = process)
          AND NOT id = ANY(${claims.ids})
          FOR NO KEY UPDATE SKIP LOCKED LIMIT ${maxTaken})
        RETURNING id, claim`);
      const read: typeof taken = [];
      for (const { id, claim } of rows) read.push({ run: await readOn(on, id), claim });
      taken = read;
    });
    for (const { run, claim } of taken) claims.set(run.id, claim);
    return taken.map(({ run }) => run);
  }

  /** Until the transaction ends nobody else takes it. */
  async #isOwn(on: Statements, runId: string): Promise<boolean> {
    const { processId, claims } = this.#host;
    const [found] = await on.column<string>(sql`SELECT id FROM fermata.branched_runs
      WHERE id = ${runId} AND process = ${processId} AND claim = ${claims.of(runId)} FOR UPDATE`);
    return found !== undefined;
  }
}

async function readOn(on: Statements, runId: string): Promise<InterruptedRun> {
  const work = reading(runId);
  let step = work.next();
  while (step.done !== true) step = work.next(await on.all(step.value));
  return step.value;
}
