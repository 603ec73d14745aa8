/** Statements and transactions on the SQLite file that keeps responses and conversations. */

import type Database from "libsql";
import { Given, type Outcome, type Query, StoreDatabase, textOf, type Work } from "../sql.ts";

type Bound = string | number | Buffer | null;

/** What it does is done when it returns. */
export class SqliteDatabase extends StoreDatabase {
  readonly #database: Database.Database;
  /** A statement is compiled once. */
  readonly #statements = new Map<string, Database.Statement>();

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

  /** Once for each of the rows that come with it: SQLite takes no lists. */
  #outcomeOf(query: Query): Outcome {
    const bound: Bound[] = [];
    const rowsAt: { rows: Given["rows"]; at: number }[] = [];
    const text = textOf(query, (value) => {
      if (!(value instanceof Given)) {
        bound.push(value as Bound);
        return "?";
      }
      rowsAt.push({ rows: value.rows, at: bound.length });
      const columns = Object.keys(value.columns).map((name) => `? AS ${name}`);
      return `(SELECT ${columns.join(", ")}, 0 AS place) AS given`;
    });
    const statement = this.#statement(text);
    const [{ rows, at } = { rows: [[]], at: 0 }] = rowsAt;
    const outcomes = rows.map((row) =>
      outcomeOf(statement, [...bound.slice(0, at), ...row, ...bound.slice(at)]),
    );
    return {
      rows: outcomes.flatMap((outcome) => outcome.rows),
      changes: outcomes.reduce((sum, { changes }) => sum + changes, 0),
    };
  }

  #statement(text: string): Database.Statement {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    // A file has no schemas.
    const statement = this.#database.prepare(text.replaceAll("fermata.", ""));
    this.#statements.set(text, statement);
    return statement;
  }
}

function outcomeOf(statement: Database.Statement, values: readonly Bound[]): Outcome {
  if (!statement.reader) return { rows: [], changes: statement.run(...values).changes };
  const rows = statement.all(...values);
  return { rows, changes: rows.length };
}
