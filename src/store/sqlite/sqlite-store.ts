/** Responses and conversations in one SQLite file. */

import { randomBytes } from "node:crypto";
import { FermataError } from "../../errors.ts";
import type { OpenStore } from "../types.ts";
import { ItemTable } from "./item-table.ts";
import { ClockWatch } from "../clock-watch.ts";
import { Ends } from "../host.ts";
import { sql } from "../sql.ts";
import { StoreDatabase } from "./database.ts";
import { openDatabase } from "./open.ts";
import {
  defaultLimits,
  retentionEvery,
  type RetentionLimits,
  type StoreOptions,
} from "../retention-limits.ts";
import { applyRetention } from "./retention.ts";
import { Runs } from "./runs.ts";
import { SqliteBranches } from "./sqlite-branches.ts";
import { SqliteConversations } from "./sqlite-conversations.ts";
import { SqliteResponses } from "./sqlite-responses.ts";

export class SqliteStore implements OpenStore {
  readonly responses: SqliteResponses;
  readonly conversations: SqliteConversations;
  readonly branches: SqliteBranches;
  readonly shared = null;
  readonly #database: StoreDatabase;
  readonly #clock = new ClockWatch();
  readonly #limits: RetentionLimits;
  readonly #runs: Runs;
  readonly #items: ItemTable;
  #created = 0;
  #isClosed = false;
  readonly #ends = new Ends();

  /**
   * @param path null: in memory, until it is closed
   * @throws FermataError store_invalid (the file is no store) | store_in_use (another server of this machine has it)
   */
  constructor(path: string | null, { limits }: StoreOptions = {}) {
    this.#database = new StoreDatabase(openDatabase(path));
    this.#limits = { ...defaultLimits, ...limits };
    const other = Runs.livingProcess(this.#database);
    if (other !== null) {
      this.#database.close();
      const message = `The store ${path} is in use by process ${other}. Stop that server, or give this one another --store.`;
      throw new FermataError("store_in_use", message, { param: "store" });
    }
    this.#runs = new Runs(this.#database, () => this.#ends.writeAll());
    this.#items = new ItemTable(this.#database);
    const host = {
      processId: this.#runs.id,
      forgetDead: () => this.#failInterrupted(),
      keepLimits: () => this.#keepLimits(),
      writeEnd: (id: string, work: () => void) =>
        this.#ends.write(id, () => this.#database.inTransaction(work)),
    };
    this.responses = new SqliteResponses(this.#database, this.#items, host);
    this.conversations = new SqliteConversations(this.#database, this.#items);
    this.branches = new SqliteBranches(this.#database, host, path !== null);
    this.#database.inTransaction(() => {
      this.#failInterrupted();
      this.#applyRetention();
    });
  }

  /** 32 random bytes, the same for all who open the file. */
  async secret(name: string): Promise<Buffer> {
    return this.#database.inTransaction(() => {
      this.#database.run(sql`INSERT OR IGNORE INTO secrets (name, value)
        VALUES (${name}, ${randomBytes(32)})`);
      const [secret] = this.#database.column<Uint8Array>(sql`SELECT value FROM secrets
        WHERE name = ${name}`);
      return Buffer.from(secret!);
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#ends.writeAll();
    this.responses.leaveHolds(this.#runs.id);
    this.#runs.close();
    this.#database.close();
  }

  #failInterrupted(): void {
    for (const run of this.#runs.dead()) {
      this.responses.failAll(run);
      this.#runs.forget(run);
    }
  }

  #keepLimits(): void {
    if (++this.#created % retentionEvery === 0) this.#applyRetention();
  }

  #applyRetention(): void {
    applyRetention(this.#database, this.#items, this.#limits, this.#clock.isBelieved);
  }
}
