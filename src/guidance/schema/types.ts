/** What the schema compiler reads and says. Type-only. */

export type JsonObject = { [key: string]: unknown };

export type JsonType = "null" | "boolean" | "number" | "string" | "array" | "object";

export type Draft = "draft-07" | "draft-2020-12";

/** A keyword that no mask can hold. In strict mode an error, in lenient mode what is validated afterwards. */
export interface SchemaIssue {
  /** JSON pointer of the subschema as a URI fragment: `#/properties/city`. */
  path: string;
  keyword: string;
  /** Completes "The keyword … ". */
  reason: string;
}

/** How JSON is written: fixed, so that a model cannot spend its tokens on blanks. Regular expressions. */
export interface JsonStyle {
  itemSeparator: string;
  keySeparator: string;
}
