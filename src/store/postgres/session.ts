/**
 * One connection for as long as this process has the database open. It holds an advisory lock, by which the others see that
 * this process lives, shows signs of life, and hears what the others tell.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import pg from "pg";
import { sql, type Statements, statementsOn } from "./database.ts";
import { lockClass } from "./schema.ts";

const beatMs = 1000;
/** A process without its lock counts as gone after this time without a sign of life: it may be connecting anew. */
const silenceSeconds = 5;
const reconnectMs = 250;
const channel = "fermata";

export interface SessionListener {
  /** The ids of what has changed. Null: a connection was lost, and anything may have. */
  onChange(ids: readonly string[] | null): void;
  /** After each sign of life. */
  onBeat(): void;
  /** Others took this process for dead: what it worked on may be theirs by now. */
  onTakenForDead(): void;
}

export class Session {
  readonly id = randomUUID();
  readonly #config: pg.ClientConfig;
  readonly #listener: SessionListener;
  #client: pg.Client | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  /** Others may be connecting anew too, so nobody is taken for dead before this time. */
  #patientUntil = 0;
  #isBeating = false;

  constructor(config: pg.ClientConfig, listener: SessionListener) {
    this.#config = config;
    this.#listener = listener;
  }

  /** @throws what prevents it */
  async open(): Promise<void> {
    await this.#connect();
    this.#timer = setInterval(() => void this.#beat(), beatMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    try {
      await this.#client?.query("DELETE FROM fermata.processes WHERE id = $1", [this.id]);
      await this.#client?.end();
    } catch {
      // The others see that the lock is gone.
    }
  }

  /**
   * Processes that are gone. Their locks are this transaction's until it ends, so that none of them comes back meanwhile.
   */
  async dead(on: Statements): Promise<string[]> {
    if (performance.now() < this.#patientUntil) return [];
    return await on.column<string>(sql`WITH silent AS MATERIALIZED (
        SELECT id, number FROM fermata.processes
        WHERE id <> ${this.id} AND seen_at < now() - make_interval(secs => ${silenceSeconds})
        FOR UPDATE SKIP LOCKED)
      SELECT id FROM silent WHERE pg_try_advisory_xact_lock(${lockClass}, number)`);
  }

  async #connect(): Promise<void> {
    const client = new pg.Client(this.#config);
    client.on("error", () => this.#lost(client));
    client.on("end", () => this.#lost(client));
    client.on("notification", ({ payload = "" }) => this.#listener.onChange(payload.split(",")));
    try {
      await client.connect();
      const on = statementsOn(client);
      // A machine that vanishes is noticed in seconds. A socket of the same machine has no such settings.
      for (const [name, value] of keepAlive)
        await on.run(sql`SELECT set_config(${name}, ${value}, false)`);
      await client.query(`LISTEN ${channel}`);
      await this.#signIn(on);
    } catch (error) {
      client.removeAllListeners("end");
      client.end().catch(() => {});
      throw error;
    }
    this.#client = client;
  }

  /** The row of this process, and the lock of its number. */
  async #signIn(on: Statements): Promise<void> {
    const [number] = await on.column<number>(sql`INSERT INTO fermata.processes (id, place)
      VALUES (${this.id}, ${`${hostname()} ${process.pid}`})
      ON CONFLICT (id) DO UPDATE SET seen_at = now() RETURNING number`);
    // Waits for whoever takes this process for dead, or for the end of the connection that was lost.
    await on.run(sql`SELECT pg_advisory_lock(${lockClass}, ${number!})`);
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = null;
    client.removeAllListeners("notification");
    client.end().catch(() => {});
    if (!this.#isClosed) void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#connect();
        this.#patientUntil = performance.now() + silenceSeconds * 1000;
        this.#listener.onChange(null);
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, reconnectMs).unref());
      }
    }
  }

  async #beat(): Promise<void> {
    const client = this.#client;
    if (client === null || this.#isBeating) return;
    this.#isBeating = true;
    try {
      const on = statementsOn(client);
      const known = await on.run(sql`UPDATE fermata.processes SET seen_at = now()
        WHERE id = ${this.id}`);
      if (known === 0) {
        this.#listener.onTakenForDead();
        // Its lock's number has gone with the row: a new row has a new one.
        await on.run(sql`SELECT pg_advisory_unlock_all()`);
        await this.#signIn(on);
      }
    } catch {
      this.#lost(client);
    } finally {
      this.#isBeating = false;
    }
    this.#listener.onBeat();
  }
}

const keepAlive = [
  ["tcp_keepalives_idle", "2"],
  ["tcp_keepalives_interval", "1"],
  ["tcp_keepalives_count", "3"],
] as const;
