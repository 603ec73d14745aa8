/** Which draft a schema is written in, and draft 4 in the keywords of draft 7. */

import { isJsonObject } from "../../../json.ts";
import type { Draft, JsonObject } from "../types.ts";

/** Their values are no schemas and no containers of schemas. */
export const plainKeywords = new Set(["const", "enum", "default", "examples", "required", "type"]);

/** Their values are objects of schemas by names. */
export const namedSchemas = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);
const oldKeywords = ["dependencies", "additionalItems", "definitions"];

export interface Modern {
  schema: boolean | JsonObject;
  draft: Draft;
}

/**
 * `id` as `$id`, where the draft has it, and `exclusiveMinimum: true` as a number. `nullable`, which is OpenAPI's,
 * goes: ajv alone reads it.
 * @param schema nested as `checkSchemaSize` allows
 */
export function modernSchema(schema: boolean | JsonObject): Modern {
  const dialect = typeof schema === "boolean" ? undefined : schema["$schema"];
  const hasId = typeof dialect !== "string" || /draft-0[34]/u.test(dialect);
  const modern = modernize(schema, hasId) as boolean | JsonObject;
  return { schema: modern, draft: draftOf(modern, dialect) };
}

function modernize(value: unknown, hasId: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => modernize(item, hasId));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => modernKeyword(key, item, value, hasId)),
  );
}

function modernKeyword(
  key: string,
  value: unknown,
  schema: JsonObject,
  hasId: boolean,
): [string, unknown][] {
  if (key === "id" && typeof value === "string")
    return hasId && schema["$id"] === undefined ? [["$id", value]] : [];
  if (key === "nullable" && typeof value === "boolean") return [];
  if (key === "exclusiveMinimum" && typeof value === "boolean")
    return value && "minimum" in schema ? [[key, schema["minimum"]]] : [];
  if (key === "exclusiveMaximum" && typeof value === "boolean")
    return value && "maximum" in schema ? [[key, schema["maximum"]]] : [];
  if (plainKeywords.has(key)) return [[key, value]];
  if (!namedSchemas.has(key) || !isJsonObject(value)) return [[key, modernize(value, hasId)]];
  const named = Object.entries(value).map(([name, item]) => [name, modernize(item, hasId)]);
  return [[key, Object.fromEntries(named)]];
}

function draftOf(schema: boolean | JsonObject, dialect: unknown): Draft {
  if (typeof dialect === "string")
    return /draft-0[3467]/u.test(dialect) ? "draft-07" : "draft-2020-12";
  return mentionsOldForms(schema) ? "draft-07" : "draft-2020-12";
}

/** Without `$schema`, forms that only draft 7 has tell. `$defs` next to them is read in both. */
function mentionsOldForms(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(mentionsOldForms);
  if (!isJsonObject(value)) return false;
  if (Array.isArray(value["items"])) return true;
  return Object.entries(value).some(
    ([key, item]) =>
      (oldKeywords.includes(key) && isJsonObject(item) && key !== "definitions") ||
      (!plainKeywords.has(key) && mentionsOldForms(item)),
  );
}
