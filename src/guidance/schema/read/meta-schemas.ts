/** The schemas of schemas, which documents refer to by their addresses. */

import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { isJsonObject } from "../../../json.ts";
import type { JsonObject } from "../types.ts";

/** By what the addresses of a draft's schemas begin with. */
const drafts: readonly [prefix: string, schemasOf: () => Ajv["schemas"]][] = [
  ["http://json-schema.org/draft-07/", () => new Ajv().schemas],
  ["https://json-schema.org/draft/2019-09/", () => new Ajv2019().schemas],
  ["https://json-schema.org/draft/2020-12/", () => new Ajv2020().schemas],
];
const read = new Map<string, JsonObject>();

/** The document with those among its definitions that it refers to. */
export function withMetaSchemas(schema: boolean | JsonObject): boolean | JsonObject {
  if (!isJsonObject(schema)) return schema;
  const needed = drafts.filter(([prefix]) => refersTo(schema, prefix));
  if (needed.length === 0) return schema;
  const { $defs } = schema;
  const definitions: JsonObject = isJsonObject($defs) ? { ...$defs } : {};
  for (const [prefix, schemasOf] of needed)
    Object.assign(definitions, metaSchemas(prefix, schemasOf));
  return { ...schema, $defs: definitions };
}

function metaSchemas(prefix: string, schemasOf: () => Ajv["schemas"]): JsonObject {
  let all = read.get(prefix);
  if (all === undefined) {
    const known = Object.entries(schemasOf()).filter(([uri]) => uri.startsWith(prefix));
    all = Object.fromEntries(known.map(([uri, found]) => [uri, found?.schema as unknown]));
    read.set(prefix, all);
  }
  return all;
}

function refersTo(value: unknown, prefix: string): boolean {
  if (Array.isArray(value)) return value.some((item) => refersTo(item, prefix));
  if (!isJsonObject(value)) return false;
  const { $ref } = value;
  if (typeof $ref === "string" && $ref.startsWith(prefix)) return true;
  return Object.values(value).some((item) => refersTo(item, prefix));
}
