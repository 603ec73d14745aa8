/** What this process and the others that have the database open know of each other's responses and runs. */

import { callOfRun } from "../branches.ts";
import type { DeliveryListener, QuestionState, SharedStore } from "../types.ts";
import { Changes } from "./changes.ts";
import type { Claims } from "./claims.ts";
import { sql, type Statements } from "../sql.ts";
import type { PostgresDatabase } from "./database.ts";
import { channels, type Session } from "./session.ts";
import { randomUUID } from "node:crypto";

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

/** Within this time another process has taken over from one that is gone. */
const patienceMs = 15_000;
/** Who took it at the last moment answers within this time. */
const answerMs = 2000;
/** What tells of a delivery and of its answer is a hint: who missed it is told again, or looks. */
const lookMs = 1000;

/** What one process hands to another. It is written before it is told, so that it is not lost with a connection. */
class Deliveries {
  readonly #on: Statements;
  readonly #changes: Changes;
  readonly #listeners: DeliveryListener[] = [];
  /** Ids of those that this process is about to answer. */
  readonly #taken = new Set<string>();

  constructor(on: Statements, changes: Changes) {
    this.#on = on;
    this.#changes = changes;
  }

  onDelivery(listener: DeliveryListener): void {
    this.#listeners.push(listener);
  }

  /** @returns the answer; null: nobody took it in time, or may any more */
  async deliver(
    about: string,
    body: unknown,
    mayBeTaken: () => Promise<boolean>,
  ): Promise<unknown> {
    const id = randomUUID();
    await this.#on.run(sql`INSERT INTO fermata.deliveries (id, about, body)
      VALUES (${id}, ${about}, ${JSON.stringify(body)}) ON CONFLICT (id) DO NOTHING`);
    let until = performance.now() + patienceMs;
    let answer: string | null | undefined = null;
    while (typeof answer !== "string" && performance.now() < until) {
      const change = this.#change(id);
      if (!(await mayBeTaken())) until = Math.min(until, performance.now() + answerMs);
      await this.#on.run(sql`SELECT pg_notify(${channels.deliveries}, ${id})`);
      await change;
      [answer] = await this.#on.column<string | null>(sql`SELECT answer FROM fermata.deliveries
        WHERE id = ${id}`);
    }
    await this.#on.run(sql`DELETE FROM fermata.deliveries WHERE id = ${id}`);
    return typeof answer === "string" ? (JSON.parse(answer) as unknown) : null;
  }

  /** A process has a delivery: maybe for this one. */
  async heard(id: string): Promise<void> {
    if (this.#taken.has(id)) return;
    this.#taken.add(id);
    try {
      const row = await this.#on.get<{ about: string; body: string }>(sql`SELECT about, body
        FROM fermata.deliveries WHERE id = ${id} AND answer IS NULL`);
      if (row !== undefined) await this.#take(id, row.about, JSON.parse(row.body));
    } catch {
      // It is told again as long as its sender waits.
    } finally {
      this.#taken.delete(id);
    }
  }

  async #take(id: string, about: string, body: unknown): Promise<void> {
    for (const listener of this.#listeners) {
      const work = listener(about, body);
      if (work === null) continue;
      const outcome = await work;
      if (outcome === undefined) continue;
      const answer = JSON.stringify(outcome);
      await this.#on.run(sql`UPDATE fermata.deliveries SET answer = ${answer} WHERE id = ${id}`);
      this.#changes.tell(id);
      return;
    }
  }

  /** Resolves when the answer may be there. */
  async #change(id: string): Promise<void> {
    let wake = (): void => {};
    const changed = new Promise<void>((resolve) => (wake = resolve));
    const stop = this.#changes.follow(id, wake);
    const timer = setTimeout(wake, lookMs);
    await changed;
    clearTimeout(timer);
    stop();
  }
}
