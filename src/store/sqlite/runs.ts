/** Who works on the responses of a file: several processes may share it, and any may die. */

import type { Database } from "libsql";
import { randomUUID } from "node:crypto";

/** A process that was not seen for so long is gone, even if another has its number. */
const silenceSeconds = 60;
const heartbeatMs = 10_000;

/** Of this process, which may have several stores open. */
const ownRuns = new Set<string>();

export class Runs {
  readonly id = randomUUID();
  readonly #database: Database;
  readonly #timer: NodeJS.Timeout;

  constructor(database: Database) {
    this.#database = database;
    ownRuns.add(this.id);
    database
      .prepare("INSERT INTO runs (id, pid, seen_at) VALUES (?, ?, ?)")
      .run(this.id, process.pid, nowSeconds());
    this.#timer = setInterval(() => this.#beat(), heartbeatMs);
    this.#timer.unref();
  }

  /** Ids of processes that ended without closing the store. */
  dead(): string[] {
    const rows = this.#database.prepare("SELECT id, pid, seen_at FROM runs").all() as {
      id: string;
      pid: number;
      seen_at: number;
    }[];
    return rows.filter((row) => !ownRuns.has(row.id) && !isAlive(row)).map(({ id }) => id);
  }

  forget(id: string): void {
    this.#database.prepare("DELETE FROM runs WHERE id = ?").run(id);
  }

  close(): void {
    clearInterval(this.#timer);
    ownRuns.delete(this.id);
    this.forget(this.id);
  }

  /** One that is missed, since the disk is full or another process writes, is made up for by the next. */
  #beat(): void {
    try {
      this.#database.prepare("UPDATE runs SET seen_at = ? WHERE id = ?").run(nowSeconds(), this.id);
    } catch {
      // Whatever must be written fails by itself, and says so.
    }
  }
}

function isAlive({ pid, seen_at: seenAt }: { pid: number; seen_at: number }): boolean {
  // In a container every process may have this one's number.
  if (pid === process.pid || nowSeconds() - seenAt > silenceSeconds) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
