/** What this process and the others that have the database open know of each other's responses and runs. */

import { callOfRun } from "../branches.ts";
import type { DeliveryListener, QuestionState, SharedStore } from "../types.ts";
import { Changes } from "./changes.ts";
import type { Claims } from "./claims.ts";
import { sql } from "../sql.ts";
import type { PostgresDatabase } from "./database.ts";
import { Deliveries } from "./deliveries.ts";
import { channels, type Session } from "./session.ts";

/** The id of a question that was decided. One of an earlier Fermata has none. */
function closedQuestion(row: QuestionRow | undefined): string | undefined {
  if (row === undefined || row.isOpen) return undefined;
  return (JSON.parse(row.body) as { askingId?: string }).askingId;
}

interface QuestionRow {
  isOpen: boolean;
  /** Null: it is gone. */
  asker: string | null;
  body: string;
}

export class PostgresShared implements SharedStore {
  readonly #database: PostgresDatabase;
  readonly #claims: Claims;
  readonly #session: () => Session;
  readonly #changes: Changes;
  readonly #deliveries: Deliveries;
  readonly #onCancel: ((id: string) => void)[] = [];
  readonly #onLeft: (() => void)[] = [];
  readonly #onLost: ((id: string) => Promise<void>)[] = [];

  constructor(database: PostgresDatabase, claims: Claims, session: () => Session) {
    this.#database = database;
    this.#claims = claims;
    this.#session = session;
    this.#changes = new Changes(database);
    this.#deliveries = new Deliveries(database, this.#changes);
  }

  get processId(): string {
    return this.#session().id;
  }

  async isAtWork(id: string): Promise<boolean> {
    const [isIt] = await this.#database.column<boolean>(sql`SELECT
      EXISTS (SELECT FROM fermata.branched_runs WHERE id = ${id} AND process IS NOT NULL)
      OR EXISTS (SELECT FROM fermata.responses WHERE id = ${id} AND (run IS NOT NULL
        OR EXISTS (SELECT FROM fermata.response_holds WHERE response_id = ${id})))`);
    return isIt === true;
  }

  follow(id: string, listener: () => void): () => void {
    return this.#changes.follow(id, listener);
  }

  async cancel(id: string): Promise<void> {
    await this.#database.run(sql`SELECT pg_notify(${channels.cancels}, ${id})`);
  }

  onCancel(listener: (id: string) => void): void {
    this.#onCancel.push(listener);
  }

  async openQuestion(owner: string, callId: string, question: unknown): Promise<void> {
    await this.#database.run(sql`INSERT INTO fermata.questions (process, call_id, owner, body)
      VALUES (${this.#session().id}, ${callId}, ${owner}, ${JSON.stringify(question)})
      ON CONFLICT (process, call_id) DO UPDATE SET owner = excluded.owner, body = excluded.body,
        is_open = true, changed_at = now()`);
  }

  async closeQuestion(callId: string, end: "decided" | "dropped"): Promise<void> {
    if (end === "decided")
      await this.#database.run(sql`UPDATE fermata.questions SET is_open = false, changed_at = now()
        WHERE process = ${this.processId} AND call_id = ${callId}`);
    else
      await this.#database.run(sql`DELETE FROM fermata.questions
        WHERE process = ${this.processId} AND call_id = ${callId}`);
  }

  async settleQuestion(owner: string, callId: string): Promise<void> {
    await this.#database.run(sql`UPDATE fermata.questions SET is_open = false, changed_at = now()
      WHERE owner = ${owner} AND call_id = ${callId} AND is_open
        AND NOT EXISTS (SELECT FROM fermata.processes WHERE processes.id = process)`);
  }

  async openQuestions(owner: string): Promise<unknown[]> {
    const bodies = await this.#database.column<string>(sql`SELECT body FROM fermata.questions
      JOIN fermata.processes ON processes.id = process
      WHERE owner = ${owner} AND is_open AND process <> ${this.#session().id} ORDER BY changed_at`);
    return bodies.map((body) => JSON.parse(body) as unknown);
  }

  async questionState(owner: string, callId: string): Promise<QuestionState | null> {
    const row = await this.#database.get<QuestionRow>(sql`
      SELECT is_open AS "isOpen", processes.id AS asker, body
      FROM fermata.questions LEFT JOIN fermata.processes ON processes.id = process
      WHERE owner = ${owner} AND call_id = ${callId}
      ORDER BY is_open AND processes.id IS NOT NULL DESC, changed_at DESC LIMIT 1`);
    if (row?.isOpen === true && row.asker !== null)
      return { at: "open", asker: row.asker, question: JSON.parse(row.body) };
    // What a process asked that is gone, and whether somebody asks again, is known by the journal of the run.
    const call = await callOfRun(this.#database, owner, callId, closedQuestion(row));
    if (call === "asked") return { at: "left" };
    const isDecided = row !== undefined && (!row.isOpen || call === "past");
    return isDecided ? { at: "decided" } : null;
  }

  async deliver(
    about: string,
    body: unknown,
    mayBeTaken: () => Promise<boolean>,
  ): Promise<unknown> {
    return await this.#deliveries.deliver(about, body, mayBeTaken);
  }

  onDelivery(listener: DeliveryListener): void {
    this.#deliveries.onDelivery(listener);
  }

  onLeft(listener: () => void): void {
    this.#onLeft.push(listener);
  }

  onLost(listener: (id: string) => Promise<void>): void {
    this.#onLost.push(listener);
  }

  /** Something of it is new, and stored. */
  changed(id: string): void {
    this.#changes.tell(id);
  }

  /** @param payload null: anything may have been told */
  heard(channel: string, payload: string | null): void {
    if (channel === channels.changes) this.#changes.heard(payload?.split(",") ?? null);
    else if (channel === channels.deliveries) void this.#deliveries.heard(payload!);
    else for (const listener of this.#onCancel) listener(payload!);
  }

  async lookForWork(): Promise<void> {
    if (!(await this.#session().seesWork(this.#database))) return;
    for (const listener of this.#onLeft) listener();
  }

  /** After others took this process for dead. What they took ends here, and may come back later. */
  async dropLost(): Promise<void> {
    const { id: process } = this.#session();
    const ids = this.#claims.ids;
    const own = await this.#database.all<{ id: string; claim: number }>(sql`
      SELECT id, claim FROM fermata.branched_runs WHERE id = ANY(${ids}) AND process = ${process}
      UNION ALL SELECT id, claim FROM fermata.responses
      WHERE id = ANY(${ids}) AND run = ${process}`);
    const claims = new Map(own.map(({ id, claim }) => [id, claim]));
    const lost = ids.filter((id) => claims.get(id) !== this.#claims.of(id));
    await Promise.all(
      lost.map(async (id) => {
        await Promise.all(this.#onLost.map((listener) => listener(id)));
        this.#claims.end(id);
      }),
    );
  }
}
