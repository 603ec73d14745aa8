/** Statements and transactions on the SQLite file that keeps responses and conversations. */

import type Database from "libsql";
import { Given, type Outcome, Query, StoreDatabase, textOf, type Work } from "../sql.ts";

type Bound = string | number | Buffer | null;

interface Compiled {
  statement: Database.Statement;
  /** It has rows. */
  isReader: boolean;
}

/** What it does is done when it returns. */
export class SqliteDatabase extends StoreDatabase {
  readonly #database: Database.Database;
  /** Each is compiled once. */
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
    const key = keyOf(query, bound);
    const { statement, isReader } = this.#statements.get(key) ?? this.#compile(key, query);
    if (!isReader) return { rows: [], changes: statement.run(...bound).changes };
    const rows = statement.all(...bound);
    return { rows, changes: rows.length };
  }

  #compile(key: string, query: Query): Compiled {
    const text = textOf(query, (value) => (value instanceof Given ? tableOf(value) : "?"));
    // A file has no schemas.
    const statement = this.#database.prepare(text.replaceAll("fermata.", ""));
    const compiled = { statement, isReader: statement.reader };
    this.#statements.set(key, compiled);
    return compiled;
  }
}

/** Of texts of the program, which are the same objects each time. */
const numbers = new WeakMap<readonly string[], number>();
let count = 0;

/** Equal for queries of equal text, without putting it together. @param bound gets the values */
function keyOf({ text, values }: Query, bound: Bound[]): string {
  if (!numbers.has(text)) numbers.set(text, count++);
  let key = `${numbers.get(text)}`;
  for (const value of values) {
    if (value instanceof Query) key += `(${keyOf(value, bound)})`;
    else if (value instanceof Given) {
      const { columns, rows } = value;
      const isOne = rows.length === 1;
      key += `${isOne ? "one" : "many"} ${Object.keys(columns).join()}`;
      // SQLite takes no lists.
      if (isOne) bound.push(...rows[0]!);
      else bound.push(JSON.stringify(rows));
    } else {
      key += ",";
      bound.push(value as Bound);
    }
  }
  return key;
}

function tableOf({ columns, rows }: Given): string {
  const isOne = rows.length === 1;
  const values = Object.entries(columns).map(([name, type], index) =>
    isOne
      ? `CAST(? AS ${type === "text" ? "TEXT" : "INTEGER"}) AS ${name}`
      : `value ->> ${index} AS ${name}`,
  );
  return isOne
    ? `(SELECT ${values.join(", ")}, 0 AS place) AS given`
    : `(SELECT ${values.join(", ")}, key AS place FROM json_each(?)) AS given`;
}
