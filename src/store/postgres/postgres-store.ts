/** Responses and conversations in a Postgres database, which any number of servers share. */

import { randomBytes } from "node:crypto";
import pg from "pg";
import { ClockWatch } from "../clock-watch.ts";
import { Ends } from "../host.ts";
import {
  defaultLimits,
  retentionEvery,
  type RetentionLimits,
  type StoreOptions,
} from "../retention-limits.ts";
import type { OpenStore } from "../types.ts";
import { plainAddress } from "./address.ts";
import { PostgresBranches } from "./branches.ts";
import { Claims } from "./claims.ts";
import { PostgresConversations } from "./conversations.ts";
import { type Soon, sql } from "../sql.ts";
import { PostgresDatabase, statementsOn } from "./database.ts";
import { failResponsesOf, PostgresResponses } from "./responses.ts";
import { applyRetention } from "./retention.ts";
import { migrate, openingFailure } from "./schema.ts";
import { Session } from "./session.ts";
import { PostgresShared } from "./shared.ts";

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
      const [commits] = await statementsOn(client).column<string>(sql`SHOW synchronous_commit`);
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
  readonly responses: PostgresResponses;
  readonly conversations: PostgresConversations;
  readonly branches: PostgresBranches;
  readonly shared: PostgresShared;
  readonly #database: PostgresDatabase;
  readonly #session: Session;
  readonly #clock = new ClockWatch();
  readonly #limits: RetentionLimits;
  readonly #claims = new Claims();
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
    const host = {
      claims: this.#claims,
      processId: this.#session.id,
      forgetDead: () => this.#failInterrupted(),
      keepLimits: () => this.#keepLimits(),
      writeEnd: (id: string, work: () => Soon<void>) => this.#ends.write(id, work),
      changed: (id: string) => this.shared.changed(id),
    };
    this.responses = new PostgresResponses(this.#database, host);
    this.conversations = new PostgresConversations(this.#database);
    this.branches = new PostgresBranches(this.#database, host);
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
      await this.responses.leaveHolds();
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
    await this.#database.inTransaction(async (on) => {
      for (const id of await this.#session.dead(on)) {
        await failResponsesOf(on, id);
        await on.run(sql`DELETE FROM fermata.processes WHERE id = ${id}`);
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
