/** Statements with their values, and work of several of them, as both databases do it. */

type Scalar = string | number | Buffer | boolean | null;
type Value = Scalar | readonly (string | number | null)[] | Given | Query;

/** Tables are named with their schema in Postgres, `fermata`. A value that is a query is part of the text. */
export class Query {
  readonly text: readonly string[];
  readonly values: readonly Value[];

  constructor(text: readonly string[], values: readonly Value[]) {
    this.text = text;
    this.values = values;
  }
}

/** A statement with its values in their places. They are bound, and never part of the text. */
export function sql(text: TemplateStringsArray, ...values: Value[]): Query {
  return new Query(text, values);
}

export const nothing = sql``;

/**
 * A table `given` of rows that come with a statement, which has one at most. The statement may be done for each row by itself, in
 * their order.
 */
export class Given {
  /** Types by name. */
  readonly columns: Readonly<Record<string, "text" | "bigint">>;
  readonly rows: readonly (readonly (string | number | null)[])[];

  constructor(columns: Given["columns"], rows: Given["rows"]) {
    this.columns = columns;
    this.rows = rows;
  }
}

/** @param write the text of a value, which it binds */
export function textOf(
  { text, values }: Query,
  write: (value: Exclude<Value, Query>) => string,
): string {
  return text.reduce((before, part, index) => {
    const value = values[index - 1]!;
    return before + (value instanceof Query ? textOf(value, write) : write(value)) + part;
  });
}

export interface Outcome {
  rows: readonly unknown[];
  /** How many rows were changed. */
  changes: number;
}

/** Of a file it is there at once. */
export type Soon<Result> = Result | Promise<Result>;

/** Statements one after the other, each of which may depend on what came of those before. */
export type Work<Result> = Generator<Query, Result, Outcome>;

/** @returns the number of changed rows */
export function* run(query: Query): Work<number> {
  return (yield query).changes;
}

export function* all<Row>(query: Query): Work<Row[]> {
  return (yield query).rows as Row[];
}

/** The first row. */
export function* get<Row>(query: Query): Work<Row | undefined> {
  return (yield* all<Row>(query))[0];
}

/** The first column. */
export function* column<Item>(query: Query): Work<Item[]> {
  return (yield* all<object>(query)).map((row) => Object.values(row)[0] as Item);
}

/** Where statements are done, each by itself. */
export abstract class Statements {
  abstract do<Result>(work: Work<Result>): Soon<Result>;

  run(query: Query): Soon<number> {
    return this.do(run(query));
  }

  get<Row>(query: Query): Soon<Row | undefined> {
    return this.do(get<Row>(query));
  }

  all<Row>(query: Query): Soon<Row[]> {
    return this.do(all<Row>(query));
  }

  column<Item>(query: Query): Soon<Item[]> {
    return this.do(column<Item>(query));
  }
}

export abstract class StoreDatabase extends Statements {
  /**
   * All of it is written, or nothing. Once that is so, the end of the process cannot undo it.
   * @param work may be called several times; what it returns is plain data @throws what it throws
   */
  abstract inTransaction<Result>(work: () => Work<Result>): Soon<Result>;
}
