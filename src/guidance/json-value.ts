/** A JSON value of a schema as a Lark expression. */

import type { JsonObject } from "./schema/types.ts";

/** How JSON is written: fixed, so that a model cannot spend its tokens on blanks. Regular expressions. */
interface JsonStyle {
  itemSeparator: string;
  keySeparator: string;
}

/** As documents are written: a blank after separators if the model likes. */
export const documentStyle: JsonStyle = { itemSeparator: ", ?", keySeparator: ": ?" };

/** @param schema as `compileSchema` writes it */
export function jsonValue(schema: JsonObject, style: JsonStyle): string {
  const options = {
    whitespace_flexible: false,
    item_separator: style.itemSeparator,
    key_separator: style.keySeparator,
  };
  return `%json ${JSON.stringify({ ...schema, "x-guidance": options })}`;
}
