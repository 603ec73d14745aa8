/** Responses and conversations in one SQLite file, within its limits. */

import { randomBytes } from "node:crypto";
import { FermataError } from "../../errors.ts";
import { Branches } from "../branches.ts";
import { ClockWatch } from "../clock-watch.ts";
import { Conversations } from "../conversations.ts";
import { Ends, type StoreHost } from "../host.ts";
import { failResponsesOf, leaveHolds, Responses } from "../responses.ts";
import {
  defaultLimits,
  retentionEvery,
  type RetentionLimits,
  type StoreOptions,
  eventsSeconds,
  nowSeconds,
} from "../retention-limits.ts";
import { all, column, nothing, run, sql, type Work } from "../sql.ts";
import type { OpenStore } from "../types.ts";
import { SqliteDatabase } from "./database.ts";
import { openDatabase } from "./open.ts";
import { Runs } from "./runs.ts";
import { isOrphan } from "../items.ts";
import { beyond, deleteEntries, type Entry, old, oldestOfLargest } from "../retention.ts";

export class SqliteStore implements OpenStore {
  readonly responses: Responses;
  readonly conversations: Conversations;
  readonly branches: Branches;
  readonly shared = null;
  readonly #database: SqliteDatabase;
  readonly #clock = new ClockWatch();
  readonly #limits: RetentionLimits;
  readonly #runs: Runs;
  readonly #host: StoreHost;
  #created = 0;
  #isClosed = false;
  readonly #ends = new Ends();

  /**
   * @param path null: in memory, until it is closed
   * @throws FermataError store_invalid (the file is no store) | store_in_use (another server of this machine has it)
   */
  constructor(path: string | null, { limits }: StoreOptions = {}) {
    this.#database = new SqliteDatabase(openDatabase(path));
    this.#limits = { ...defaultLimits, ...limits };
    const other = Runs.livingProcess(this.#database);
    if (other !== null) {
      this.#database.close();
      const message = `The store ${path} is in use by process ${other}. Stop that server, or give this one another --store.`;
      throw new FermataError("store_in_use", message, { param: "store" });
    }
    this.#runs = new Runs(this.#database, () => this.#ends.writeAll());
    this.#host = this.#hostOf(this.#runs.id, path !== null);
    this.responses = new Responses(this.#database, this.#host);
    this.conversations = new Conversations(this.#database, this.#host);
    this.branches = new Branches(this.#database, this.#host);
    this.#database.atOnce(() => {
      this.#failInterrupted();
      this.#applyRetention();
    });
  }

  /** One process at a time has the file, so nothing is claimed or locked. */
  #hostOf(processId: string, lasts: boolean): StoreHost {
    const always = sql`true`;
    return {
      processId,
      lasts,
      forgetDead: () => {
        this.#database.atOnce(() => this.#failInterrupted());
        return true;
      },
      keepLimits: () => this.#keepLimits(),
      writeEnd: (id, work) => this.#ends.write(id, work),
      changed: () => {},
      begins: () => {},
      ends: () => {},
      isOwn: () => always,
      isNoOthers: () => always,
      disowns: nothing,
      shared: nothing,
      locked: nothing,
      row: sql`rowid`,
      *lockItems() {},
      takeRuns: () =>
        all(sql`UPDATE branched_runs SET process = ${processId}
          WHERE process IS NOT NULL AND process NOT IN (SELECT id FROM runs)
          RETURNING id, 1 AS claim`),
      leftHolds: () =>
        all(sql`SELECT owner, id, request, round, next, deadline, resumes, body, 0 AS claim
          FROM response_holds JOIN responses ON id = response_id WHERE run IS NULL`),
    };
  }

  /** 32 random bytes, the same for all who open the file. */
  async secret(name: string): Promise<Buffer> {
    return this.#database.inTransaction(function* (): Work<Buffer> {
      yield* run(sql`INSERT INTO secrets (name, value)
        VALUES (${name}, ${randomBytes(32)}) ON CONFLICT (name) DO NOTHING`);
      const [secret] = yield* column<Uint8Array>(sql`SELECT value FROM secrets
        WHERE name = ${name}`);
      return Buffer.from(secret!);
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#ends.writeAll();
    this.#database.do(leaveHolds(this.#runs.id));
    this.#runs.close();
    this.#database.close();
  }

  /** Within a transaction. */
  #failInterrupted(): void {
    for (const process of this.#runs.dead()) {
      this.#database.do(failResponsesOf(process, this.#host));
      this.#runs.forget(process);
    }
  }

  #keepLimits(): void {
    if (++this.#created % retentionEvery !== 0) return;
    try {
      this.#database.atOnce(() => this.#applyRetention());
    } catch {
      // A full disk: the next one makes up for it.
    }
  }

  /** Within a transaction. */
  #applyRetention(): void {
    this.#database.do(applyRetention(this.#limits, this.#host, this.#clock.isBelieved));
  }
}

/** Entries that are looked for at once. */
const many = 1000;
/** Entries deleted in one step when the file is too large. */
const step = 10;

/** @param isClockBelieved false: nothing is deleted for its age */
function* applyRetention(
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  { row, lockItems }: Pick<StoreHost, "row" | "lockItems">,
  isClockBelieved: boolean,
): Work<void> {
  const deleteAll = function* (find: () => Work<Entry[]>): Work<void> {
    while (yield* deleteEntries(yield* find(), lockItems));
  };
  if (isClockBelieved) {
    const oldest = nowSeconds() - maxAgeSeconds;
    yield* deleteAll(() => old(oldest, many));
    yield* deleteEvents();
  }
  yield* deleteAll(() => beyond(maxCount, row, many));
  yield* run(sql`DELETE FROM items WHERE ${isOrphan}`);
  while ((yield* bytes()) > maxBytes)
    if (!(yield* deleteEntries(yield* oldestOfLargest(row, step), lockItems))) break;
}

function* deleteEvents(): Work<void> {
  const before = nowSeconds() - eventsSeconds;
  yield* run(sql`DELETE FROM response_events WHERE response_id IN
       (SELECT id FROM responses WHERE run IS NULL AND created_at < ${before}
        AND id NOT IN (SELECT response_id FROM response_holds))`);
  yield* run(sql`DELETE FROM branched_events WHERE run_id IN
       (SELECT branched_runs.id FROM branched_runs
        JOIN branched_messages ON branched_messages.id = message_id
        WHERE process IS NULL AND created_at < ${before * 1000})`);
}

/** From the file's header: adding up the rows would read all of them. */
function* bytes(): Work<number> {
  const [pages, free, size] = [
    yield* column<number>(sql`PRAGMA page_count`),
    yield* column<number>(sql`PRAGMA freelist_count`),
    yield* column<number>(sql`PRAGMA page_size`),
  ];
  return (pages[0]! - free[0]!) * size[0]!;
}
