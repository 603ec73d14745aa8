/** Statements and transactions on the Postgres database. A lost connection is made again, and nothing is done twice. */

import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { type CommonStatements, type Query, sql, type Value } from "../sql.ts";
import { isConflict, isConnectionLost, storeUnavailable } from "./failures.ts";

/** Within a transaction or without. */
export interface Statements extends CommonStatements {
  run(query: Query): Promise<number>;
  get<Row>(query: Query): Promise<Row | undefined>;
  all<Row>(query: Query): Promise<Row[]>;
  column<Item>(query: Query): Promise<Item[]>;
}

/** How long the database may be away before a request is told so. */
const patienceMs = 15_000;
const firstDelayMs = 25;
const maxDelayMs = 1000;
/** Transactions that get in each other's way are tried again so often. */
const maxConflicts = 20;

export class PostgresDatabase implements Statements {
  readonly #pool: pg.Pool;
  #retries = true;

  constructor(config: pg.PoolConfig) {
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

  /** Outside of a transaction a statement must be one that may be done twice. */
  async run(query: Query): Promise<number> {
    return await this.#retried(() => this.#connected((on) => on.run(query)));
  }

  async get<Row>(query: Query): Promise<Row | undefined> {
    return await this.#retried(() => this.#connected((on) => on.get<Row>(query)));
  }

  async all<Row>(query: Query): Promise<Row[]> {
    return await this.#retried(() => this.#connected((on) => on.all<Row>(query)));
  }

  async column<Item>(query: Query): Promise<Item[]> {
    return await this.#retried(() => this.#connected((on) => on.column<Item>(query)));
  }

  /**
   * All of `work` is written once, or nothing. When it resolves, the database has it. A connection may be lost while it
   * commits: the transaction's own row then tells whether it did, and what came of it.
   * @param work may run several times; its result is plain data
   * @throws what `work` throws, store_unavailable
   */
  async inTransaction<Result>(work: (on: Statements) => Promise<Result>): Promise<Result> {
    const id = randomUUID();
    let mayBeDone = false;
    return await this.#retried(() =>
      this.#connected(async (on) => {
        const done = mayBeDone ? await resultOf(on, id) : undefined;
        if (done !== undefined) return done.result as Result;
        await on.run(sql`BEGIN`);
        try {
          const result = await work(on);
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

  async #connected<Result>(work: (on: Statements) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    // Without a listener, a connection that breaks meanwhile ends the process.
    const ignore = (): void => {};
    client.on("error", ignore);
    let failure: unknown;
    try {
      return await work(statementsOn(client));
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

export function statementsOn(client: pg.ClientBase): Statements {
  const query = async (wanted: Query): Promise<pg.QueryResult> =>
    await client.query(textOf(wanted.text), wanted.values.map(storable));
  return {
    run: async (wanted) => (await query(wanted)).rowCount ?? 0,
    get: async <Row>(wanted: Query) => (await query(wanted)).rows[0] as Row | undefined,
    all: async <Row>(wanted: Query) => (await query(wanted)).rows as Row[],
    column: async <Item>(wanted: Query) =>
      (await query(wanted)).rows.map((row: object) => Object.values(row)[0] as Item),
  };
}

const texts = new WeakMap<TemplateStringsArray, string>();

function textOf(parts: TemplateStringsArray): string {
  const known = texts.get(parts);
  if (known !== undefined) return known;
  const text = parts.reduce((before, part, index) => `${before}$${index}${part}`);
  texts.set(parts, text);
  return text;
}

/** Postgres keeps no text with U+0000. JSON text has none, so this is about ids and titles. */
function storable(value: Value): unknown {
  if (typeof value === "string") return value.replaceAll("\0", "\uFFFD");
  if (Array.isArray(value)) return value.map((item: Value) => storable(item));
  return value;
}
