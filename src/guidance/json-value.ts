/** A JSON value of a schema as a Lark expression. */

import type { JsonObject, JsonStyle } from "./schema/types.ts";

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
