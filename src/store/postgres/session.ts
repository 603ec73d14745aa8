/**
 * One connection for as long as this process has the database open. It holds an advisory lock, by which the others see that
 * this process lives, shows signs of life, and hears what the others tell.
 */

import { randomUUID } from "node:crypto";
import pg from "pg";
import { beganAt, isRunning, place } from "../process-place.ts";
import { all, column, sql, type Statements, type Work } from "../sql.ts";
import { Connection } from "./database.ts";
import { lockClass } from "./schema.ts";

const beatMs = 1000;
/** A process without its lock counts as gone after this time without a sign of life: it may be connecting anew. */
const silenceSeconds = 5;
const reconnectMs = 250;

interface ProcessRow {
  id: string;
  place: string;
  pid: number;
  began: string | null;
  isSilent: boolean;
}

export interface SessionListener {
  /** What a process has told. Null: the connection was lost, and so may be what was told meanwhile. */
  onMessage(channel: string, payload: string | null): void;
  /** After each sign of life. */
  onBeat(): Promise<void>;
  /** Others took this process for dead: what it worked on may be theirs by now. */
  onTakenForDead(): Promise<void>;
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
  #isAfterBeat = false;
  #wasTakenForDead = false;

  constructor(config: pg.ClientConfig, listener: SessionListener) {
    // A server that vanished does not refuse: it is silent.
    this.#config = { ...config, query_timeout: silenceSeconds * 1000 };
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

  /** Some process may be gone, or has left work that nobody has taken. */
  async seesWork(on: Statements): Promise<boolean> {
    if ((await on.do(this.#suspects())).length > 0) return true;
    const [sees] = await on.column<boolean>(sql`SELECT
      EXISTS (SELECT FROM fermata.branched_runs WHERE process IS NOT NULL
        AND NOT EXISTS (SELECT FROM fermata.processes WHERE processes.id = process))
      OR EXISTS (SELECT FROM fermata.response_holds JOIN fermata.responses ON id = response_id
        WHERE run IS NULL)`);
    return sees === true;
  }

  /**
   * Processes that are gone. Their locks are this transaction's until it ends, so that none of them comes back meanwhile.
   */
  *dead(): Work<string[]> {
    return yield* column<string>(sql`WITH suspects AS MATERIALIZED (
        SELECT id, number FROM fermata.processes WHERE id = ANY(${yield* this.#suspects()})
        FOR UPDATE SKIP LOCKED)
      SELECT id FROM suspects WHERE pg_try_advisory_xact_lock(${lockClass}, number)`);
  }

  /** They have ended on this machine, or shown no sign of life on another one. */
  *#suspects(): Work<string[]> {
    const rows = yield* all<ProcessRow>(sql`SELECT id, place, pid, began,
        seen_at < now() - make_interval(secs => ${silenceSeconds}) AS "isSilent"
      FROM fermata.processes WHERE id <> ${this.id}`);
    const isPatient = performance.now() < this.#patientUntil;
    return rows
      .filter((row) => (row.isSilent && !isPatient) || (row.place === place && !isHere(row)))
      .map(({ id }) => id);
  }

  async #connect(): Promise<void> {
    const client = new pg.Client(this.#config);
    client.on("error", () => this.#lost(client));
    client.on("end", () => this.#lost(client));
    client.on("notification", ({ channel, payload = "" }) =>
      this.#listener.onMessage(channel, payload),
    );
    try {
      await client.connect();
      const on = new Connection(client);
      // A machine that vanishes is noticed in seconds. A socket of the same machine has no such settings.
      for (const [name, value] of keepAlive)
        await on.run(sql`SELECT set_config(${name}, ${value}, false)`);
      for (const channel of Object.values(channels)) await client.query(`LISTEN ${channel}`);
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
    const [number] = await on.column<number>(sql`INSERT INTO fermata.processes
      (id, place, pid, began)
      VALUES (${this.id}, ${place}, ${process.pid}, ${beganAt(process.pid)})
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
        this.#listener.onMessage(channels.changes, null);
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
      const on = new Connection(client);
      const known = await on.run(sql`UPDATE fermata.processes SET seen_at = now()
        WHERE id = ${this.id}`);
      if (known === 0) {
        // Its lock's number has gone with the row: a new row has a new one.
        await on.run(sql`SELECT pg_advisory_unlock_all()`);
        await this.#signIn(on);
        this.#wasTakenForDead = true;
      }
    } catch {
      this.#lost(client);
    } finally {
      this.#isBeating = false;
    }
    void this.#afterBeat();
  }

  /** It may take long, and signs of life go on. */
  async #afterBeat(): Promise<void> {
    if (this.#isAfterBeat || this.#isClosed) return;
    this.#isAfterBeat = true;
    try {
      if (this.#wasTakenForDead) await this.#listener.onTakenForDead();
      this.#wasTakenForDead = false;
      await this.#listener.onBeat();
    } catch {
      // The next sign of life tries again.
    } finally {
      this.#isAfterBeat = false;
    }
  }
}

/** Where the system does not tell when a process began, another may have its number by now. */
function isHere({ pid, began }: ProcessRow): boolean {
  return began === null ? isRunning(pid) : beganAt(pid) === began;
}

/** Of NOTIFY. */
export const channels = {
  changes: "fermata_changes",
  cancels: "fermata_cancels",
  deliveries: "fermata_deliveries",
} as const;

const keepAlive = [
  ["tcp_keepalives_idle", "2"],
  ["tcp_keepalives_interval", "1"],
  ["tcp_keepalives_count", "3"],
] as const;
