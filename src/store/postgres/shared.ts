/** What this process and the others that have the database open know of each other's responses and runs. */

import type { DeliveryListener, QuestionState, SharedStore } from "../types.ts";
import { Changes } from "./changes.ts";
import type { Claims } from "./claims.ts";
import { type PostgresDatabase, sql } from "./database.ts";
import { Deliveries } from "./deliveries.ts";
import { closeQuestion, openQuestion, openQuestions, questionState } from "./questions.ts";
import { channels, type Session } from "./session.ts";

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
    await openQuestion(this.#database, this.#session().id, { owner, callId }, question);
  }

  async closeQuestion(callId: string): Promise<void> {
    await closeQuestion(this.#database, this.#session().id, callId);
  }

  async openQuestions(owner: string): Promise<unknown[]> {
    return await openQuestions(this.#database, this.#session().id, owner);
  }

  async questionState(owner: string, callId: string): Promise<QuestionState | null> {
    return await questionState(this.#database, { owner, callId });
  }

  async deliver(about: string, body: unknown): Promise<unknown> {
    return await this.#deliveries.deliver(about, body);
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
