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
const oldKeywords = ["dependencies", "additionalItems"];

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
  const modern = modernize(schema, identifiersOf(schema, dialect)) as boolean | JsonObject;
  return { schema: modern, draft: draftOf(modern, dialect) };
}

type IsIdentifier = (id: string, schema: JsonObject) => boolean;

/**
 * What `id` is. Without `$schema` it may be no more than a name, and references beside it are to the whole document:
 * it counts at the document's root, as an anchor, and where a reference names it.
 */
function identifiersOf(root: boolean | JsonObject, dialect: unknown): IsIdentifier {
  if (typeof dialect === "string") return () => /draft-0[34]/u.test(dialect);
  const named = new Set<string>();
  collectResources(root, named);
  return (id, schema) => schema === root || id.startsWith("#") || named.has(lastPart(id));
}

/** That references name, before their fragments, without what theirs may be relative to. */
function collectResources(value: unknown, names: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) collectResources(item, names);
  if (!isJsonObject(value)) return;
  const { $ref } = value;
  if (typeof $ref === "string" && !$ref.startsWith("#")) names.add(lastPart($ref));
  for (const item of Object.values(value)) collectResources(item, names);
}

function lastPart(uri: string): string {
  const [resource = ""] = uri.split("#", 1);
  return resource.slice(resource.lastIndexOf("/") + 1);
}

function modernize(value: unknown, isIdentifier: IsIdentifier): unknown {
  if (Array.isArray(value)) return value.map((item) => modernize(item, isIdentifier));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => modernKeyword(key, item, value, isIdentifier)),
  );
}

function modernKeyword(
  key: string,
  value: unknown,
  schema: JsonObject,
  isIdentifier: IsIdentifier,
): [string, unknown][] {
  if (key === "id" && typeof value === "string")
    return schema["$id"] === undefined && isIdentifier(value, schema) ? [["$id", value]] : [];
  if (key === "nullable" && typeof value === "boolean") return [];
  if (key === "exclusiveMinimum" && typeof value === "boolean")
    return value && "minimum" in schema ? [[key, schema["minimum"]]] : [];
  if (key === "exclusiveMaximum" && typeof value === "boolean")
    return value && "maximum" in schema ? [[key, schema["maximum"]]] : [];
  if (plainKeywords.has(key)) return [[key, value]];
  if (!namedSchemas.has(key) || !isJsonObject(value))
    return [[key, modernize(value, isIdentifier)]];
  const named = Object.entries(value).map(([name, item]) => [name, modernize(item, isIdentifier)]);
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
  return Object.entries(value).some(([key, item]) => {
    if (oldKeywords.includes(key) && isJsonObject(item)) return true;
    if (plainKeywords.has(key)) return false;
    // What a property is called says nothing.
    const isNamed = namedSchemas.has(key) && isJsonObject(item);
    return isNamed ? Object.values(item).some(mentionsOldForms) : mentionsOldForms(item);
  });
}
