/** Statements and transactions on the SQLite file that keeps responses and conversations. */

import type Database from "libsql";

type Value = string | number | bigint | Buffer | null;
/** SQL with its values in their places, as a tagged template; or text with a `?` for each value. */
type Sql = TemplateStringsArray | string;

export class StoreDatabase {
  readonly #database: Database.Database;
  /** A statement is compiled once. */
  readonly #statements = new Map<Sql, Database.Statement>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  get isOpen(): boolean {
    return this.#database.open;
  }

  close(): void {
    this.#database.close();
  }

  /** @returns the number of changed rows, and the key of the last new one */
  run(sql: Sql, ...values: Value[]): { changes: number; lastInsertRowid: number | bigint } {
    return this.#statement(sql).run(...values);
  }

  /** The first row. */
  get<Row>(sql: Sql, ...values: Value[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  all<Row>(sql: Sql, ...values: Value[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /** The first column. */
  column<Item>(sql: Sql, ...values: Value[]): Item[] {
    return this.all<object>(sql, ...values).map((row) => Object.values(row)[0] as Item);
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
      // A full disk has ended the transaction already.
      if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  #statement(sql: Sql): Database.Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(typeof sql === "string" ? sql : sql.join("?"));
    this.#statements.set(sql, statement);
    return statement;
  }
}
