/** Statements and transactions on the SQLite file that keeps responses and conversations. */

import type Database from "libsql";

type Value = string | number | bigint | Buffer | null;

interface Query {
  text: TemplateStringsArray;
  values: Value[];
}

/** A statement with its values in their places. They are bound, and never part of the text. */
export function sql(text: TemplateStringsArray, ...values: Value[]): Query {
  return { text, values };
}

/** Its methods take a query, or text with a `?` for each value. */
export class StoreDatabase {
  readonly #database: Database.Database;
  /** A statement is compiled once. */
  readonly #statements = new Map<TemplateStringsArray | string, Database.Statement>();

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
  run(
    query: Query | string,
    ...values: Value[]
  ): { changes: number; lastInsertRowid: number | bigint } {
    return this.#statement(query).run(...valuesOf(query, values));
  }

  /** The first row. */
  get<Row>(query: Query | string, ...values: Value[]): Row | undefined {
    return this.#statement(query).get(...valuesOf(query, values)) as Row | undefined;
  }

  all<Row>(query: Query | string, ...values: Value[]): Row[] {
    return this.#statement(query).all(...valuesOf(query, values)) as Row[];
  }

  /** The first column. */
  column<Item>(query: Query | string, ...values: Value[]): Item[] {
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

  #statement(query: Query | string): Database.Statement {
    const text = typeof query === "string" ? query : query.text;
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(typeof text === "string" ? text : text.join("?"));
    this.#statements.set(text, statement);
    return statement;
  }
}

function valuesOf(query: Query | string, values: Value[]): Value[] {
  return typeof query === "string" ? values : query.values;
}
