/** Statements and transactions on the SQLite file that keeps responses and conversations. */

import type Database from "libsql";
import type { CommonStatements, Query } from "../sql.ts";

type Value = string | number | Buffer | null;

/** Its methods take a query, or text with a `?` for each value. They are done when they return. */
export class StoreDatabase implements CommonStatements {
  readonly #database: Database.Database;
  /** A statement is compiled once. */
  readonly #statements = new Map<TemplateStringsArray | string, Database.Statement>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  close(): void {
    this.#database.close();
  }

  run(query: Query<Value> | string, ...values: Value[]): number {
    return this.#statement(query).run(...valuesOf(query, values)).changes;
  }

  get<Row>(query: Query<Value> | string, ...values: Value[]): Row | undefined {
    return this.#statement(query).get(...valuesOf(query, values)) as Row | undefined;
  }

  all<Row>(query: Query<Value> | string, ...values: Value[]): Row[] {
    return this.#statement(query).all(...valuesOf(query, values)) as Row[];
  }

  column<Item>(query: Query<Value> | string, ...values: Value[]): Item[] {
    return this.all<object>(query, ...values).map((row) => Object.values(row)[0] as Item);
  }

  /**
   * All of `work` is written, or nothing. When it returns, the end of the process cannot undo it.
   * @throws what `work` throws
   */
  inTransaction<Result>(work: () => Result): Result {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#database.exec("COMMIT");
      return result;
    } catch (error) {
      try {
        // A full disk has ended the transaction already.
        if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
      } catch {
        // The first cause is what is told; the transaction ends with the connection.
      }
      throw error;
    }
  }

  #statement(query: Query<Value> | string): Database.Statement {
    const text = typeof query === "string" ? query : query.text;
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    // A file has no schemas.
    const own = typeof text === "string" ? text : text.join("?").replaceAll("fermata.", "");
    const statement = this.#database.prepare(own);
    this.#statements.set(text, statement);
    return statement;
  }
}

function valuesOf(query: Query<Value> | string, values: readonly Value[]): readonly Value[] {
  return typeof query === "string" ? values : query.values;
}
