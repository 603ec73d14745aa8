/** Responses and conversations in a Postgres database, which any number of servers share, within its limits. */

import { randomBytes } from "node:crypto";
import pg from "pg";
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
import type { OpenStore } from "../types.ts";
import { plainAddress } from "./address.ts";
import { Claims } from "./claims.ts";
import { all, run, sql, column, type Work } from "../sql.ts";
import { Connection, PostgresDatabase } from "./database.ts";
import { lockItems, migrate, openingFailure, lockClass, retentionLock } from "./schema.ts";
import { Session } from "./session.ts";
import { PostgresShared } from "./shared.ts";
import { beyond, deleteEntries, type Entry, old, oldestOfLargest } from "../retention.ts";

/** Of one look for runs that were left; the other processes take the rest. */
const maxTaken = 16;

/**
 * @param address postgres://…; what is not in it comes from PGPASSWORD and the like
 * @throws FermataError store_invalid | store_unavailable | invalid_option
 */
export async function openPostgresStore(
  address: string,
  { limits }: StoreOptions = {},
): Promise<PostgresStore> {
  plainAddress(address);
  const config = configOf(address);
  try {
    const client = new pg.Client(config);
    client.on("error", () => {});
    try {
      await client.connect();
      await migrate(client, address);
      // What is acknowledged is on the server's disk, whatever its other databases are content with.
      const [commits] = await new Connection(client).column<string>(sql`SHOW synchronous_commit`);
      if (commits === "off") config.options = "-c synchronous_commit=on";
    } finally {
      await client.end();
    }
    const store = new PostgresStore(config, { ...defaultLimits, ...limits });
    await store.open();
    return store;
  } catch (error) {
    throw openingFailure(error, address);
  }
}

function configOf(address: string): pg.ClientConfig {
  return {
    connectionString: address,
    application_name: "fermata",
    keepAlive: true,
    connectionTimeoutMillis: 5000,
    types: {
      // Counts and times fit a number.
      getTypeParser: (oid: number, format?: string) =>
        oid === pg.types.builtins.INT8
          ? Number
          : pg.types.getTypeParser(oid, format as "text" | undefined),
    } as pg.CustomTypesConfig,
  };
}

class PostgresStore implements OpenStore {
  readonly responses: Responses;
  readonly conversations: Conversations;
  readonly branches: Branches;
  readonly shared: PostgresShared;
  readonly #database: PostgresDatabase;
  readonly #session: Session;
  readonly #clock = new ClockWatch();
  readonly #limits: RetentionLimits;
  readonly #claims = new Claims();
  readonly #host: StoreHost;
  #created = 0;
  #retention: Promise<void> | null = null;
  readonly #ends = new Ends();
  #isClosed = false;

  constructor(config: pg.ClientConfig, limits: RetentionLimits) {
    this.#limits = limits;
    this.#database = new PostgresDatabase(config);
    this.shared = new PostgresShared(this.#database, this.#claims, () => this.#session);
    this.#session = new Session(config, {
      onMessage: (channel, payload) => this.shared.heard(channel, payload),
      onBeat: () => this.#ends.writeAll().then(() => this.shared.lookForWork()),
      onTakenForDead: () => this.shared.dropLost(),
    });
    this.#host = this.#hostOf(this.#session.id);
    this.responses = new Responses(this.#database, this.#host);
    this.conversations = new Conversations(this.#database, this.#host);
    this.branches = new Branches(this.#database, this.#host);
  }

  #hostOf(processId: string): StoreHost {
    const claims = this.#claims;
    return {
      processId,
      lasts: true,
      forgetDead: () => this.#failInterrupted(),
      keepLimits: () => this.#keepLimits(),
      writeEnd: (id, work) => this.#ends.write(id, work),
      changed: (id) => this.shared.changed(id),
      begins: ({ id, claim }) => claims.set(id, claim),
      ends: (id, mayFollow = false) => (mayFollow ? claims.endSoon(id) : claims.end(id)),
      isOwn: (id) => sql`claim = ${claims.of(id)}`,
      isNoOthers: (id) => (claims.of(id) === 0 ? sql`true` : sql`claim = ${claims.of(id)}`),
      disowns: sql`, claim = claim + 1`,
      shared: sql`FOR SHARE`,
      locked: sql`FOR UPDATE`,
      row: sql`row`,
      lockItems,
      // A run that this process still has open, since it was taken for dead, ends first.
      takeRuns: () =>
        all(sql`UPDATE fermata.branched_runs SET process = ${processId}, claim = claim + 1
          WHERE id IN (SELECT id FROM fermata.branched_runs WHERE process IS NOT NULL
            AND NOT EXISTS (SELECT FROM fermata.processes WHERE processes.id = process)
            AND NOT id = ANY(${claims.ids})
            FOR NO KEY UPDATE SKIP LOCKED LIMIT ${maxTaken})
          RETURNING id, claim`),
      // Another process that looks at the same time takes others.
      leftHolds: () =>
        all(sql`SELECT owner, id, request, round, next, deadline, resumes, body, claim
          FROM fermata.response_holds JOIN fermata.responses ON id = response_id
          WHERE run IS NULL AND NOT id = ANY(${claims.ids})
          ORDER BY row FOR NO KEY UPDATE OF responses SKIP LOCKED`),
    };
  }

  /** Before anything else. */
  async open(): Promise<void> {
    try {
      await this.#session.open();
      await this.#failInterrupted();
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#retain();
  }

  /** 32 random bytes, the same for all who open the database. */
  async secret(name: string): Promise<Buffer> {
    await this.#database.run(sql`INSERT INTO fermata.secrets (name, value)
      VALUES (${name}, ${randomBytes(32)}) ON CONFLICT (name) DO NOTHING`);
    const [secret] = await this.#database.column<Buffer>(sql`SELECT value FROM fermata.secrets
      WHERE name = ${name}`);
    return secret!;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#database.stopRetrying();
    await this.#ends.writeAll();
    try {
      await this.#retention;
      await this.#database.do(leaveHolds(this.#session.id));
    } catch {
      // The others take what waits once they see that this process is gone.
    }
    await this.#session.close();
    await this.#database.close();
  }

  /** Resolves when the limits are kept. */
  async retained(): Promise<void> {
    await this.#retention;
  }

  /** False: no process has left anything. */
  async #failInterrupted(): Promise<boolean> {
    if (!(await this.#session.seesWork(this.#database))) return false;
    const [session, host] = [this.#session, this.#host];
    await this.#database.inTransaction(function* () {
      for (const id of yield* session.dead()) {
        yield* failResponsesOf(id, host);
        yield* run(sql`DELETE FROM fermata.processes WHERE id = ${id}`);
      }
    });
    return true;
  }

  #keepLimits(): void {
    if (++this.#created % retentionEvery === 0) this.#retain();
  }

  /** Beside what else is done. */
  #retain(): void {
    this.#retention ??= applyRetention(this.#database, this.#limits, this.#clock.isBelieved)
      .catch(() => {})
      .finally(() => (this.#retention = null));
  }
}

export type { PostgresStore };

/** Entries deleted in one step. */
const step = 10;
/** Rows of events deleted in one step. */
const eventStep = 1000;
/** How long the outcomes of transactions are kept, and what processes told each other. */
const writesSeconds = 3600;

const row = sql`row`;

/** Of all processes one does it at a time. @param isClockBelieved false: nothing is deleted for its age */
async function applyRetention(
  database: PostgresDatabase,
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  isClockBelieved: boolean,
): Promise<void> {
  if (isClockBelieved) {
    const oldest = nowSeconds() - maxAgeSeconds;
    await repeat(() => deleteStep(database, () => old(oldest, step)));
    await deleteEvents(database);
  }
  await repeat(() => deleteStep(database, () => beyond(maxCount, row, step)));
  while ((await bytesOf(database)) > maxBytes)
    if (!(await deleteStep(database, () => oldestOfLargest(row, step)))) break;
}

async function repeat(work: () => Promise<boolean>): Promise<void> {
  let isMore = true;
  while (isMore) isMore = await work();
}

/** @returns false: there was nothing to delete, or another process does it */
async function deleteStep(database: PostgresDatabase, find: () => Work<Entry[]>): Promise<boolean> {
  return await database.inTransaction(function* () {
    const [isMine] = yield* column<boolean>(
      sql`SELECT pg_try_advisory_xact_lock(${lockClass}, ${retentionLock})`,
    );
    return isMine === true && (yield* deleteEntries(yield* find(), lockItems));
  });
}

async function deleteEvents(database: PostgresDatabase): Promise<void> {
  const before = nowSeconds() - eventsSeconds;
  const deletions = [
    sql`DELETE FROM fermata.response_events WHERE ctid IN (SELECT response_events.ctid
      FROM fermata.response_events JOIN fermata.responses ON id = response_id
      WHERE run IS NULL AND created_at < ${before}
        AND id NOT IN (SELECT response_id FROM fermata.response_holds) LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.branched_events WHERE ctid IN (SELECT branched_events.ctid
      FROM fermata.branched_events
      JOIN fermata.branched_runs ON branched_runs.id = run_id
      JOIN fermata.branched_messages ON branched_messages.id = message_id
      WHERE process IS NULL AND created_at < ${before * 1000} LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.writes WHERE ctid IN (SELECT ctid FROM fermata.writes
      WHERE written_at < now() - make_interval(secs => ${writesSeconds}) LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.questions WHERE ctid IN (SELECT ctid FROM fermata.questions
      WHERE changed_at < now() - make_interval(secs => ${writesSeconds})
        AND (NOT is_open OR process NOT IN (SELECT id FROM fermata.processes)) LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.deliveries WHERE ctid IN (SELECT ctid FROM fermata.deliveries
      WHERE sent_at < now() - make_interval(secs => ${writesSeconds}) LIMIT ${eventStep})`,
  ];
  for (const deletion of deletions)
    await repeat(async () => (await database.run(deletion)) === eventStep);
}

/** Of the texts: the size of the tables counts rows that are deleted, too. */
async function bytesOf(database: PostgresDatabase): Promise<number> {
  const [bytes = 0] = await database.column<number>(sql`SELECT (
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.items) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.responses) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.response_events) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.branched_messages) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.branched_events))::bigint`);
  return bytes;
}
