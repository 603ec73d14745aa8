/** Statements and transactions on the Postgres database. A lost connection is made again, and nothing is done twice. */

import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import {
  Given,
  type Outcome,
  type Query,
  sql,
  Statements,
  StoreDatabase,
  textOf,
  type Work,
} from "../sql.ts";
import { isConflict, isConnectionLost, storeUnavailable } from "./failures.ts";

/** How long the database may be away before a request is told so. */
const patienceMs = 15_000;
const firstDelayMs = 25;
const maxDelayMs = 1000;
/** Transactions that get in each other's way are tried again so often. */
const maxConflicts = 20;

export class PostgresDatabase extends StoreDatabase {
  readonly #pool: pg.Pool;
  #retries = true;

  constructor(config: pg.PoolConfig) {
    super();
    this.#pool = new pg.Pool({ ...config, max: 10, query_timeout: 2 * patienceMs });
    // An idle connection that breaks is replaced by the next statement.
    this.#pool.on("error", () => {});
  }

  /** From now on a lost connection is told at once. */
  stopRetrying(): void {
    this.#retries = false;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Each statement by itself: it must be one that may be done twice. */
  override async do<Result>(work: Work<Result>): Promise<Result> {
    return await perform(work, (query) =>
      this.#retried(() => this.#connected((client) => outcomeOf(client, query))),
    );
  }

  /**
   * A connection may be lost while it commits: the transaction's own row then tells whether it did, and what came of it.
   * @throws what `work` throws, store_unavailable
   */
  override async inTransaction<Result>(work: () => Work<Result>): Promise<Result> {
    const id = randomUUID();
    let mayBeDone = false;
    return await this.#retried(() =>
      this.#connected(async (client) => {
        const on = new Connection(client);
        const done = mayBeDone ? await resultOf(on, id) : undefined;
        if (done !== undefined) return done.result as Result;
        await on.run(sql`BEGIN`);
        try {
          const result = await on.do(work());
          const text = JSON.stringify(result ?? null);
          await on.run(sql`INSERT INTO fermata.writes (id, result) VALUES (${id}, ${text})`);
          mayBeDone = true;
          await on.run(sql`COMMIT`);
          return result;
        } catch (error) {
          // Without a connection the database ends it.
          if (!isConnectionLost(error)) await on.run(sql`ROLLBACK`);
          throw error;
        }
      }),
    );
  }

  async #connected<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    // Without a listener, a connection that breaks meanwhile ends the process.
    const ignore = (): void => {};
    client.on("error", ignore);
    let failure: unknown;
    try {
      return await work(client);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      client.off("error", ignore);
      client.release(failure !== undefined && isConnectionLost(failure));
    }
  }

  async #retried<Result>(work: () => Promise<Result>): Promise<Result> {
    const until = performance.now() + patienceMs;
    let delayMs = firstDelayMs;
    for (let conflicts = 0; ;) {
      try {
        return await work();
      } catch (error) {
        if (isConflict(error) && conflicts < maxConflicts) {
          conflicts += 1;
          continue;
        }
        if (!isConnectionLost(error)) throw error;
        if (!this.#retries || performance.now() + delayMs > until) throw storeUnavailable(error);
      }
      await setTimeout(delayMs);
      delayMs = Math.min(2 * delayMs, maxDelayMs);
    }
  }
}

async function resultOf(on: Statements, id: string): Promise<{ result: unknown } | undefined> {
  const row = await on.get<{ result: string }>(sql`SELECT result FROM fermata.writes
    WHERE id = ${id}`);
  return row && { result: JSON.parse(row.result) as unknown };
}

/** Statements on one connection. */
export class Connection extends Statements {
  readonly #client: pg.ClientBase;

  constructor(client: pg.ClientBase) {
    super();
    this.#client = client;
  }

  override async do<Result>(work: Work<Result>): Promise<Result> {
    return await perform(work, (query) => outcomeOf(this.#client, query));
  }
}

async function perform<Result>(
  work: Work<Result>,
  outcome: (query: Query) => Promise<Outcome>,
): Promise<Result> {
  let step = work.next({ rows: [], changes: 0 });
  while (step.done !== true) step = work.next(await outcome(step.value));
  return step.value;
}

async function outcomeOf(client: pg.ClientBase, query: Query): Promise<Outcome> {
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(storable(value))}`;
  const text = textOf(query, (value) => {
    if (!(value instanceof Given)) return bind(value);
    const names = Object.keys(value.columns);
    const lists = Object.values(value.columns).map(
      (type, index) => `${bind(value.rows.map((row) => row[index]))}::${type}[]`,
    );
    return `unnest(${lists.join(", ")}) WITH ORDINALITY AS given (${names.join(", ")}, place)`;
  });
  const { rows, rowCount } = await client.query(text, values);
  return { rows, changes: rowCount ?? 0 };
}

/** Postgres keeps no text with U+0000. JSON text has none, so this is about ids and titles. */
function storable(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("\0", "\uFFFD");
  return Array.isArray(value) ? value.map(storable) : value;
}
