/** CommonStatements, and what both databases do with them. */

/** What both can bind. */
type Scalar = string | number | Buffer | null;

export type Value = Scalar | boolean | readonly (string | number | null)[];

export interface Query<Bound = Value> {
  text: TemplateStringsArray;
  values: readonly Bound[];
}

/** A statement with its values in their places. They are bound, and never part of the text. */
export function sql<const Values extends readonly Value[]>(
  text: TemplateStringsArray,
  ...values: Values
): Query<Values[number]> {
  return { text, values };
}

/** Of a file it is there at once. */
export type Soon<Result> = Result | Promise<Result>;

/** Tables are named with their schema in Postgres, `fermata`. */
export interface CommonStatements {
  /** @returns the number of changed rows */
  run(query: Query<Scalar>): Soon<number>;
  /** The first row. */
  get<Row>(query: Query<Scalar>): Soon<Row | undefined>;
  all<Row>(query: Query<Scalar>): Soon<Row[]>;
  /** The first column. */
  column<Item>(query: Query<Scalar>): Soon<Item[]>;
}
