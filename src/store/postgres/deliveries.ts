/** What one process hands to another. It is written before it is told, so that it is not lost with a connection. */

import { randomUUID } from "node:crypto";
import type { DeliveryListener } from "../types.ts";
import type { Changes } from "./changes.ts";
import { sql, type Statements } from "../sql.ts";
import { channels } from "./session.ts";

/** Within this time another process has taken over from one that is gone. */
const patienceMs = 15_000;
/** Who took it at the last moment answers within this time. */
const answerMs = 2000;
/** What tells of a delivery and of its answer is a hint: who missed it is told again, or looks. */
const lookMs = 1000;

export class Deliveries {
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
