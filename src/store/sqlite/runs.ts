/** The processes that have a store's file open. A process that dies leaves its row behind. */

import { sql, type StoreDatabase } from "./database.ts";
import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
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
  readonly #database: StoreDatabase;
  readonly #timer: NodeJS.Timeout;

  /** @param onBeat called after each sign of life */
  constructor(database: StoreDatabase, onBeat: () => void) {
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
  static livingProcess(database: StoreDatabase): number | null {
    const isAlive = (row: RunRow): boolean => row.place === place && stateOf(row) === "alive";
    return otherRuns(database).find(isAlive)?.pid ?? null;
  }

  forget(id: string): void {
    this.#database.run(sql`DELETE FROM runs WHERE id = ${id}`);
  }

  close(): void {
    clearInterval(this.#timer);
    ownRuns.delete(this.id);
    this.forget(this.id);
  }

  #beat(): void {
    // A process that took this one for dead has deleted the row.
    this.#database.run(sql`INSERT INTO runs (id, pid, seen_at, place, began)
      VALUES (${this.id}, ${process.pid}, ${nowSeconds()}, ${place}, ${beganAt(process.pid)})
       ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`);
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

function otherRuns(database: StoreDatabase): RunRow[] {
  const rows = database.all<RunRow>(sql`SELECT id, pid, seen_at, place, began FROM runs`);
  return rows.filter(({ id }) => !ownRuns.has(id));
}

/**
 * Where process numbers count: the machine since it started, and the container. What stands still, or whose clock jumps, is
 * alive there all the same.
 */
const place = [
  hostname(),
  readOr(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
  readOr(() => readlinkSync("/proc/self/ns/pid")),
].join(" ");

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

/** The start time in ticks since boot. Null: there is no such process, or the system does not tell. */
function beganAt(pid: number): string | null {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The name in brackets may hold anything. The state follows it, and the start time 19 fields later.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
}

function readOr(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
