/**
 * Arrays of constants without repeats. The mask engine's JSON Schema has none: in a compiled schema they have a keyword of
 * ours, as numbers that are no integers have (`fractions.ts`), and what leads to one is written in rules (`json-values.ts`).
 */

import { isJsonObject } from "../../../json.ts";
import type { JsonObject, Scalar } from "../types.ts";
import { fractionKeyword } from "./fractions.ts";

/** Of an array, in place of what its items are: each of these is an item once at most. */
export const distinctKeyword = "x-distinct";

/** Characters. What rules do not write is written by itself, each part with all definitions that it needs. */
const most = { schema: 100_000, definitions: 20_000 };

export function distinctItems(schema: JsonObject): readonly Scalar[] | null {
  const items = schema[distinctKeyword];
  return Array.isArray(items) ? (items as Scalar[]) : null;
}

function isRuled(schema: JsonObject): boolean {
  return distinctKeyword in schema || fractionKeyword in schema;
}

/** What leads to a keyword of ours can be written in rules. */
export function fitsRules(schema: JsonObject | null): boolean {
  if (schema === null || !mentionsRuled(schema)) return true;
  const { $defs = {}, ...root } = schema;
  const definitions = $defs as Record<string, JsonObject>;
  if (JSON.stringify($defs).length > most.definitions) return false;
  if (JSON.stringify(root).length > most.schema) return false;
  const leads = leadingTo(definitions);
  return [root, ...Object.values(definitions)].every((part) => isPlain(part, leads));
}

/** @param schema compiled */
export function mentionsRuled(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(mentionsRuled);
  if (!isJsonObject(schema)) return false;
  return isRuled(schema) || Object.values(schema).some(mentionsRuled);
}

export type Leads = (schema: unknown) => boolean;

/** Of a part of the schema with these definitions: whether a keyword of ours is in it. */
export function leadingTo(definitions: Record<string, JsonObject>): Leads {
  const leading = new Set<string>();
  const leads = (value: unknown): boolean => {
    if (Array.isArray(value)) return value.some(leads);
    if (!isJsonObject(value)) return false;
    const { $ref } = value;
    if (typeof $ref === "string" && leading.has($ref)) return true;
    return isRuled(value) || Object.values(value).some(leads);
  };
  for (let before = -1; before < leading.size;) {
    before = leading.size;
    for (const [name, definition] of Object.entries(definitions))
      if (leads(definition)) leading.add(`#/$defs/${name}`);
  }
  return leads;
}

/** Rules count no properties and know no patterns of their names. */
function isPlain(value: unknown, leads: Leads): boolean {
  if (!leads(value)) return true;
  if (Array.isArray(value)) return value.every((item) => isPlain(item, leads));
  const schema = value as JsonObject;
  if (isRuled(schema)) return true;
  const isCounted = "minProperties" in schema || "maxProperties" in schema;
  if (schema["type"] === "object" && (isCounted || "patternProperties" in schema)) return false;
  return Object.values(schema).every((item) => isPlain(item, leads));
}
