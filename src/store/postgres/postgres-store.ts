/** Responses and conversations in a Postgres database, which any number of servers share. */

import { randomBytes } from "node:crypto";
import pg from "pg";
import { ClockWatch } from "../clock-watch.ts";
import { isAtWork } from "../response-state.ts";
import {
  defaultLimits,
  retentionEvery,
  type RetentionLimits,
  type StoreOptions,
} from "../retention-limits.ts";
import type {
  HeldCall,
  NewResponse,
  OpenStore,
  ResponseHold,
  ResponseItems,
  StoredItem,
  StoredResponse,
} from "../types.ts";
import { plainAddress } from "./address.ts";
import { PostgresBranches } from "./branches.ts";
import { Claims } from "./claims.ts";
import { PostgresConversations } from "./conversations.ts";
import { PostgresDatabase, sql, statementsOn } from "./database.ts";
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
  readonly conversations: PostgresConversations;
  readonly branches: PostgresBranches;
  readonly shared: PostgresShared;
  readonly #database: PostgresDatabase;
  readonly #session: Session;
  readonly #clock = new ClockWatch();
  readonly #limits: RetentionLimits;
  readonly #claims = new Claims();
  readonly #responses: PostgresResponses;
  #created = 0;
  #retention: Promise<void> | null = null;
  /** Ends that could not be written, by the ids of what they end. */
  readonly #unwritten = new Map<string, () => Promise<void>>();
  #isClosed = false;

  constructor(config: pg.ClientConfig, limits: RetentionLimits) {
    this.#limits = limits;
    this.#database = new PostgresDatabase(config);
    this.shared = new PostgresShared(this.#database, this.#claims, () => this.#session);
    this.#session = new Session(config, {
      onMessage: (channel, payload) => this.shared.heard(channel, payload),
      onBeat: () => this.#writeEnds().then(() => this.shared.lookForWork()),
      onTakenForDead: () => this.shared.dropLost(),
    });
    this.#responses = new PostgresResponses(this.#database, this.#claims, this.#session.id);
    this.conversations = new PostgresConversations(this.#database);
    this.branches = new PostgresBranches(this.#database, {
      claims: this.#claims,
      processId: this.#session.id,
      forgetDead: () => this.#failInterrupted(),
      keepLimits: () => this.#keepLimits(),
      writeEnd: (id, work) => this.#writeEnd(id, work),
      changed: (id) => this.shared.changed(id),
    });
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

  async createResponse(response: NewResponse): Promise<void> {
    await this.#responses.insert(response);
    this.#keepLimits();
  }

  async updateResponse(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void> {
    // Tried again later, it is written only if no other process has taken it over meanwhile.
    const claim = this.#claims.of(id);
    const work = (): Promise<void> => this.#responses.update({ owner, id, claim }, body, output);
    if (isAtWork(body)) await work();
    else await this.#writeEnd(id, work);
    this.shared.changed(id);
  }

  async response(owner: string, id: string): Promise<StoredResponse | null> {
    const found = await this.#responses.find(owner, id);
    if (found === null || found.run === null || found.run === this.#session.id) return found;
    // Another process was at work on it, and may be gone since.
    await this.#failInterrupted();
    return await this.#responses.find(owner, id);
  }

  async responses(owner: string): Promise<StoredResponse[]> {
    return await this.#responses.all(owner);
  }

  async responseItems(owner: string, id: string): Promise<ResponseItems | null> {
    return await this.#responses.items(owner, id);
  }

  async deleteResponse(owner: string, id: string): Promise<boolean> {
    return await this.#responses.delete(owner, id);
  }

  async item(owner: string, id: string): Promise<StoredItem | null> {
    return await this.#responses.item(owner, id);
  }

  async updateItem(owner: string, item: StoredItem): Promise<void> {
    await this.#responses.updateItem(owner, item);
  }

  async setHold(hold: Omit<ResponseHold, "resumes">): Promise<void> {
    await this.#responses.setHold(hold);
  }

  async countHold(id: string, by: 1 | -1 = 1): Promise<void> {
    await this.#responses.countHold(id, by);
  }

  async takeHolds(): Promise<ResponseHold[]> {
    return (await this.#failInterrupted()) ? await this.#responses.takeHolds() : [];
  }

  async setHeldCall(
    responseId: string,
    callId: string,
    state: unknown,
    from?: unknown,
  ): Promise<boolean> {
    const before = from === undefined ? null : JSON.stringify(from);
    const changes = await this.#database
      .run(sql`INSERT INTO fermata.held_calls AS known (holder, call_id, state)
      VALUES (${responseId}, ${callId}, ${JSON.stringify(state)})
      ON CONFLICT (holder, call_id) DO UPDATE SET state = excluded.state
      WHERE ${before}::text IS NULL OR known.state = ${before}`);
    return changes > 0;
  }

  async heldCall(owner: string, callId: string): Promise<HeldCall | null> {
    const row = await this.#database.get<{ holder: string; state: string }>(sql`SELECT holder, state
      FROM fermata.held_calls JOIN fermata.responses ON responses.id = holder
      WHERE owner = ${owner} AND call_id = ${callId}`);
    return row === undefined ? null : { responseId: row.holder, state: JSON.parse(row.state) };
  }

  async eventTokens(id: string, from: number): Promise<number[]> {
    return await this.#responses.eventTokens(id, from);
  }

  async addEvent(
    id: string,
    number: number,
    event: object,
    tokens?: readonly number[],
  ): Promise<void> {
    await this.#responses.addEvent(id, number, event, tokens);
    this.shared.changed(id);
  }

  async events(owner: string, id: string, after = -1): Promise<unknown[]> {
    return await this.#responses.events(owner, id, after);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#database.stopRetrying();
    await this.#writeEnds();
    try {
      await this.#retention;
      await this.#responses.leaveHolds();
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

  /** What has ended is written as ended, now or once the database is there: while this process lives nobody else ends it. @throws what prevents it now */
  async #writeEnd(id: string, work: () => Promise<void>): Promise<void> {
    this.#unwritten.set(id, work);
    await work();
    this.#unwritten.delete(id);
  }

  async #writeEnds(): Promise<void> {
    try {
      for (const [id, work] of this.#unwritten) await this.#writeEnd(id, work);
    } catch {
      // Its caller knows why since the first time; the next sign of life tries again.
    }
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
