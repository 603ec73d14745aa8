/** What a format that writes arguments in another form than JSON cannot hold of a compiled schema. */

import { isJsonObject } from "../json.ts";
import type { ArgumentStyle } from "./call-syntax.ts";
import { freeProperties } from "./free-properties.ts";
import { objectsOf } from "./lark.ts";
import type { JsonObject } from "./schema/types.ts";

/** @param schema as `compileSchema` writes it @returns a keyword that the grammar leaves open; null: it is exact */
export function openKeyword({ style }: ArgumentStyle, schema: JsonObject): string | null {
  if (style === "json") return null;
  if (style !== "parameters") return openInside(schema);
  // Inside of a parameter JSON is written.
  const open = objectsOf(schema).map(openCount);
  return open.find((keyword) => keyword !== null) ?? null;
}

function openInside(value: unknown): string | null {
  if (!isJsonObject(value) && !Array.isArray(value)) return null;
  const own = isJsonObject(value) && value["type"] === "object" ? openCount(value) : null;
  if (own !== null) return own;
  for (const [key, item] of Object.entries(value)) {
    // Values say nothing of others; what a property is called says nothing either.
    if (key === "enum" || key === "const") continue;
    const isNamed = key === "properties" || key === "patternProperties" || key === "$defs";
    const inside = isNamed && isJsonObject(item) ? Object.values(item) : item;
    const open = openInside(inside);
    if (open !== null) return open;
  }
  return null;
}

/** Of properties: which of the optional ones are written is open, and how many of free names. */
function openCount(schema: JsonObject): string | null {
  if (Number(schema["minProperties"] ?? 0) > countOf(schema["required"])) return "minProperties";
  return "maxProperties" in schema && freeProperties(schema).length > 0 ? "maxProperties" : null;
}

function countOf(list: unknown): number {
  return typeof list === "object" && list !== null ? Object.keys(list).length : 0;
}
