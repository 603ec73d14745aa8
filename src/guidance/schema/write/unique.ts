/**
 * Arrays whose items must all differ. No grammar can say so: the masks' engine remembers the items (native/guidance/unique_items.h)
 * and knows the arrays by their first item. In a compiled schema they have a keyword of ours.
 */

import { isJsonObject } from "../../../json.ts";
import type { JsonObject, Marker } from "../types.ts";

/** Of an array: how it is known. */
export const uniqueKeyword = "x-unique";

/** A text that the first item is not, where numbers and any text may be items. */
export const lacking = "\uF8FF";

/** `native/guidance/unique_items.cpp` knows the same. */
const items: Record<Marker, number | string> = {
  number: 7_919_283_746_501,
  string: "\uF8FFunique",
};

/** Of an array that has one. */
export function markerItem(schema: JsonObject): JsonObject | null {
  const marker = schema["type"] === "array" ? schema[uniqueKeyword] : undefined;
  return marker === undefined ? null : { const: items[marker as Marker] };
}

/** The schema in keywords that the mask engine has. */
export function withMarkers(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withMarkers);
  if (!isJsonObject(schema)) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, withMarkers(value)]),
  );
  const item = markerItem(schema);
  if (item === null) return inner;
  const { [uniqueKeyword]: _marker, ...array } = inner;
  return { anyOf: [array, { type: "array", prefixItems: [item], items: false, minItems: 1 }] };
}
