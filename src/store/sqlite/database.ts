/** Statements and transactions on the SQLite file that keeps responses and conversations. */

import type Database from "libsql";
import { Given, type Outcome, type Query, StoreDatabase, textOf, type Work } from "../sql.ts";

type Bound = string | number | Buffer | null;

interface Compiled {
  statement: Database.Statement;
  /** It has rows. */
  isReader: boolean;
}

/** What it does is done when it returns. */
export class SqliteDatabase extends StoreDatabase {
  readonly #database: Database.Database;
  /** A statement is compiled once. */
  readonly #statements = new Map<string, Compiled>();

  constructor(database: Database.Database) {
    super();
    this.#database = database;
  }

  close(): void {
    this.#database.close();
  }

  override do<Result>(work: Work<Result>): Result {
    let step = work.next({ rows: [], changes: 0 });
    while (step.done !== true) step = work.next(this.#outcomeOf(step.value));
    return step.value;
  }

  override inTransaction<Result>(work: () => Work<Result>): Result {
    return this.atOnce(() => this.do(work()));
  }

  /** As `inTransaction`, of any work that ends when it returns. */
  atOnce<Result>(work: () => Result): Result {
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

  #outcomeOf(query: Query): Outcome {
    const bound: Bound[] = [];
    const text = textOf(query, (value) => {
      if (!(value instanceof Given)) {
        bound.push(value as Bound);
        return "?";
      }
      // SQLite takes no lists.
      bound.push(JSON.stringify(value.rows));
      const columns = Object.keys(value.columns).map(
        (name, index) => `value ->> ${index} AS ${name}`,
      );
      return `(SELECT ${columns.join(", ")}, key AS place FROM json_each(?)) AS given`;
    });
    const { statement, isReader } = this.#statement(text);
    if (!isReader) return { rows: [], changes: statement.run(...bound).changes };
    const rows = statement.all(...bound);
    return { rows, changes: rows.length };
  }

  #statement(text: string): Compiled {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    // A file has no schemas.
    const statement = this.#database.prepare(text.replaceAll("fermata.", ""));
    const compiled = { statement, isReader: statement.reader };
    this.#statements.set(text, compiled);
    return compiled;
  }
}
