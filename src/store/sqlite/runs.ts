/** The processes that have a store's file open. A process that dies leaves its row behind. */

import { all, run, sql } from "../sql.ts";
import type { SqliteDatabase } from "./database.ts";
import { randomUUID } from "node:crypto";
import { beganAt, isRunning, place } from "../process-place.ts";
import { nowSeconds } from "../retention-limits.ts";

/** A process on another machine or in another container counts as gone after this time without a heartbeat. */
const silenceSeconds = 60;
const heartbeatMs = 10_000;

/** The rows of this process, which may have several stores open. */
const ownRuns = new Set<string>();

interface RunRow {
  id: string;
  pid: number;
  seen_at: number;
  /** Machine, boot and container in which `pid` is unique. Null: an earlier Fermata wrote the row. */
  place: string | null;
  /** The process's start time, as its system counts it. */
  began: string | null;
}

export class Runs {
  readonly id = randomUUID();
  readonly #database: SqliteDatabase;
  readonly #timer: NodeJS.Timeout;

  /** @param onBeat called after each sign of life */
  constructor(database: SqliteDatabase, onBeat: () => void) {
    this.#database = database;
    ownRuns.add(this.id);
    this.#beat();
    this.#timer = setInterval(() => {
      this.#tryBeat();
      onBeat();
    }, heartbeatMs);
    this.#timer.unref();
  }

  /** Ids of processes that ended without closing the store. */
  dead(): string[] {
    return otherRuns(this.#database)
      .filter((row) => stateOf(row) === "gone")
      .map(({ id }) => id);
  }

  /** The pid of another live process of this machine that has the file open. */
  static livingProcess(database: SqliteDatabase): number | null {
    const isAlive = (row: RunRow): boolean => row.place === place && stateOf(row) === "alive";
    return otherRuns(database).find(isAlive)?.pid ?? null;
  }

  forget(id: string): void {
    this.#database.do(run(sql`DELETE FROM runs WHERE id = ${id}`));
  }

  close(): void {
    clearInterval(this.#timer);
    ownRuns.delete(this.id);
    this.forget(this.id);
  }

  #beat(): void {
    // A process that took this one for dead has deleted the row.
    this.#database.do(
      run(sql`INSERT INTO runs (id, pid, seen_at, place, began)
      VALUES (${this.id}, ${process.pid}, ${nowSeconds()}, ${place}, ${beganAt(process.pid)})
       ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`),
    );
  }

  /** A heartbeat fails when the disk is full or another process writes. The next one makes up for it. */
  #tryBeat(): void {
    try {
      this.#beat();
    } catch {
      // Writes that matter report their own failure.
    }
  }
}

function otherRuns(database: SqliteDatabase): RunRow[] {
  const rows = database.do(all<RunRow>(sql`SELECT id, pid, seen_at, place, began FROM runs`));
  return rows.filter(({ id }) => !ownRuns.has(id));
}

function stateOf(row: RunRow): "alive" | "gone" {
  if (row.place === place) {
    const began = beganAt(row.pid);
    if (began !== null) return began === row.began ? "alive" : "gone";
    // Not Linux: another program may have the number by now.
    if (row.began === null && row.pid !== process.pid && isRunning(row.pid)) return isSeen(row);
    return "gone";
  }
  // In a container every process may have this one's number.
  if (row.place === null && (row.pid === process.pid || !isRunning(row.pid))) return "gone";
  return isSeen(row);
}

function isSeen({ seen_at: seenAt }: RunRow): "alive" | "gone" {
  return nowSeconds() - seenAt > silenceSeconds ? "gone" : "alive";
}
