/** Responses and conversations in one SQLite file. */

import { randomBytes } from "node:crypto";
import { FermataError } from "../../errors.ts";
import type {
  HeldCall,
  NewResponse,
  ResponseHold,
  ResponseItems,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../types.ts";
import { HeldCallTable } from "./held-call-table.ts";
import { ItemTable } from "./item-table.ts";
import { ClockWatch } from "../clock-watch.ts";
import { sql, StoreDatabase } from "./database.ts";
import { openDatabase } from "./open.ts";
import { isAtWork } from "../response-state.ts";
import { ResponseTable } from "./response-table.ts";
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

export class SqliteStore implements ResponseStore {
  readonly conversations: SqliteConversations;
  readonly branches: SqliteBranches;
  readonly #database: StoreDatabase;
  readonly #clock = new ClockWatch();
  readonly #limits: RetentionLimits;
  readonly #runs: Runs;
  readonly #items: ItemTable;
  readonly #responses: ResponseTable;
  readonly #heldCalls: HeldCallTable;
  #created = 0;
  /** Ends that could not be written, by the ids of what they end. */
  readonly #unwritten = new Map<string, () => void>();

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
    this.#runs = new Runs(this.#database, () => this.#writeEnds());
    this.#items = new ItemTable(this.#database);
    this.#responses = new ResponseTable(this.#database, this.#items, this.#runs.id);
    this.conversations = new SqliteConversations(this.#database, this.#items);
    this.#heldCalls = new HeldCallTable(this.#database);
    this.branches = new SqliteBranches(this.#database, {
      lasts: path !== null,
      heldCalls: this.#heldCalls,
      processId: this.#runs.id,
      forgetDead: () => this.#failInterrupted(),
      keepLimits: () => this.#keepLimits(),
      writeEnd: (id, work) => this.#writeEnd(id, work),
    });
    this.#database.inTransaction(() => {
      this.#failInterrupted();
      this.#applyRetention();
    });
  }

  /** 32 random bytes, the same for all who open the file. */
  secret(name: string): Buffer {
    return this.#database.inTransaction(() => {
      this.#database.run(sql`INSERT OR IGNORE INTO secrets (name, value)
        VALUES (${name}, ${randomBytes(32)})`);
      const [secret] = this.#database.column<Uint8Array>(sql`SELECT value FROM secrets
        WHERE name = ${name}`);
      return Buffer.from(secret!);
    });
  }

  async createResponse(response: NewResponse): Promise<void> {
    this.#database.inTransaction(() => {
      this.#responses.insert(response);
      this.#keepLimits();
    });
  }

  async updateResponse(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void> {
    const work = (): void => this.#responses.update(owner, id, body, output);
    if (isAtWork(body)) this.#database.inTransaction(work);
    else this.#writeEnd(id, work);
  }

  async response(owner: string, id: string): Promise<StoredResponse | null> {
    const found = this.#responses.find(owner, id);
    if (found === null || found.run === null || found.run === this.#runs.id) return found;
    // Another process was at work on it, and may be gone since this one began.
    this.#database.inTransaction(() => this.#failInterrupted());
    return this.#responses.find(owner, id);
  }

  async responses(owner: string): Promise<StoredResponse[]> {
    return this.#responses.all(owner);
  }

  async responseItems(owner: string, id: string): Promise<ResponseItems | null> {
    return this.#responses.items(owner, id);
  }

  async deleteResponse(owner: string, id: string): Promise<boolean> {
    return this.#database.inTransaction(() => this.#responses.delete(owner, id));
  }

  async item(owner: string, id: string): Promise<StoredItem | null> {
    return this.#items.find(owner, id);
  }

  async updateItem(owner: string, item: StoredItem): Promise<void> {
    this.#database.inTransaction(() => this.#items.put(owner, item));
  }

  async setHold(hold: Omit<ResponseHold, "resumes">): Promise<void> {
    this.#responses.setHold(hold);
  }

  async countHold(id: string, by: 1 | -1 = 1): Promise<void> {
    this.#responses.countHold(id, by);
  }

  async takeHolds(): Promise<ResponseHold[]> {
    return this.#database.inTransaction(() => {
      this.#failInterrupted();
      return this.#responses.takeHolds();
    });
  }

  async setHeldCall(
    responseId: string,
    callId: string,
    state: unknown,
    from?: unknown,
  ): Promise<boolean> {
    return this.#heldCalls.set(responseId, callId, state, from);
  }

  async heldCall(owner: string, callId: string): Promise<HeldCall | null> {
    return this.#heldCalls.ofResponses(owner, callId);
  }

  async addEvent(
    id: string,
    number: number,
    event: object,
    tokens?: readonly number[],
  ): Promise<void> {
    this.#responses.addEvent(id, number, event, tokens);
  }

  async eventTokens(id: string, from: number): Promise<number[]> {
    return this.#responses.eventTokens(id, from);
  }

  async events(owner: string, id: string, after = -1): Promise<unknown[]> {
    return this.#responses.events(owner, id, after);
  }

  async close(): Promise<void> {
    if (!this.#database.isOpen) return;
    this.#writeEnds();
    this.#responses.leaveHolds(this.#runs.id);
    this.#runs.close();
    this.#database.close();
  }

  #failInterrupted(): void {
    for (const run of this.#runs.dead()) {
      this.#responses.failAll(run);
      this.#runs.forget(run);
    }
  }

  /** What has ended is written as ended, now or once the disk has room: while this process lives nobody else ends it. @throws what prevents it now */
  #writeEnd(id: string, work: () => void): void {
    this.#unwritten.set(id, work);
    this.#database.inTransaction(work);
    this.#unwritten.delete(id);
  }

  #writeEnds(): void {
    try {
      for (const [id, work] of this.#unwritten) this.#writeEnd(id, work);
    } catch {
      // Its caller knows why since the first time; the next sign of life tries again.
    }
  }

  #keepLimits(): void {
    if (++this.#created % retentionEvery === 0) this.#applyRetention();
  }

  #applyRetention(): void {
    applyRetention(this.#database, this.#items, this.#limits, this.#clock.isBelieved);
  }
}
