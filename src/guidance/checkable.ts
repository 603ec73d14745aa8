/** The part of a schema that ajv can judge by, and what is left out of it. */

import type { SchemaDocument } from "./schema/read/document.ts";
import { namedSchemas, plainKeywords } from "./schema/read/draft.ts";
import { escapePointer } from "./schema/read/document.ts";
import { isJsonObject } from "../json.ts";
import type { JsonObject, SchemaIssue } from "./schema/types.ts";
import { readsPattern } from "./bounded-regex.ts";

const isNumber = (value: unknown): boolean => typeof value === "number";
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
const isText = (value: unknown): boolean => typeof value === "string";
const isSchema = (value: unknown): boolean => isFlag(value) || isJsonObject(value);
const isNames = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isSchemas = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(isSchema);
const isNamed =
  (isValue: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    isJsonObject(value) && Object.values(value).every(isValue);
const types = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);
const isType = (value: unknown): boolean => types.has(value as string);

type Shape = (value: unknown) => boolean;

function each(shape: Shape, ...keywords: string[]): [string, Shape][] {
  return keywords.map((keyword) => [keyword, shape]);
}

/** What the value of a keyword must be. */
const shapes = new Map<string, Shape>([
  [
    "type",
    (value) => (Array.isArray(value) ? value.length > 0 && value.every(isType) : isType(value)),
  ],
  ["enum", (value) => Array.isArray(value) && value.length > 0],
  ["format", isText],
  ["required", isNames],
  ["uniqueItems", isFlag],
  ["multipleOf", (value) => isNumber(value) && Number(value) > 0],
  ["pattern", (value) => isText(value) && readsPattern(value as string)],
  ["items", (value) => isSchema(value) || (Array.isArray(value) && value.every(isSchema))],
  ["dependencies", isNamed((value) => isSchema(value) || isNames(value))],
  ["dependentRequired", isNamed(isNames)],
  [
    "patternProperties",
    (value) => isNamed(isSchema)(value) && Object.keys(value as JsonObject).every(readsPattern),
  ],
  ...each(isNumber, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
  ...each(isCount, "minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"),
  ...each(isCount, "minProperties", "maxProperties"),
  ...each(isNamed(isSchema), "properties", "dependentSchemas"),
  ...each(isSchemas, "allOf", "anyOf", "oneOf", "prefixItems"),
  ...each(isSchema, "not", "if", "then", "else", "contains", "propertyNames", "additionalItems"),
  ...each(isSchema, "additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
]);
/** ajv would take `$async` for a wish to answer later. */
const unread = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$dynamicAnchor",
  "$recursiveAnchor",
  "$async",
]);
const references = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** They count for names that no pattern beside them matches. */
const restOfNames = ["additionalProperties", "unevaluatedProperties"];
/** What fails inside of them makes valid. */
const turning = new Set([
  "contains",
  "if",
  "not",
  "oneOf",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

export interface Checkable {
  /** References in it are pointers from the root; it has no identifiers. */
  schema: boolean | JsonObject;
  left: SchemaIssue[];
  /** Without what is left, a value may fail that is valid. */
  refusesValid: boolean;
}

export function checkablePart(document: SchemaDocument): Checkable {
  const left: SchemaIssue[] = [];
  let isTurned = false;
  const copy = (value: unknown, pointer: string, outer: string): unknown => {
    if (Array.isArray(value))
      return value.map((item, index) => copy(item, `${pointer}/${index}`, outer));
    if (!isJsonObject(value)) return value;
    const base = document.baseAt(pointer, outer);
    const isReference = document.draft === "draft-07" && "$ref" in value;
    const kept: [string, unknown][] = [];
    for (const [keyword, item] of Object.entries(value)) {
      // In draft 7 nothing counts beside a reference.
      if (unread.has(keyword) || (isReference && shapes.has(keyword))) continue;
      if (turning.has(keyword)) isTurned = true;
      const place = `${pointer}/${escapePointer(keyword)}`;
      const leave = (reason: string): number => left.push({ path: `#${pointer}`, keyword, reason });
      if (references.has(keyword)) {
        const target = targetOf(document, keyword, item, base);
        if (target === null) leave("leads to nothing that is known");
        else kept.push(["$ref", target]);
      } else if (shapes.get(keyword)?.(item) === false) {
        leave("has a value that it cannot have");
        if (restOfNames.some((rest) => keyword === "patternProperties" && rest in value))
          isTurned = true;
      } else if (plainKeywords.has(keyword)) kept.push([keyword, item]);
      else if (namedSchemas.has(keyword) && isJsonObject(item)) {
        // ajv passes over this name.
        if (Object.hasOwn(item, "__proto__")) leave('names "__proto__"');
        const named = Object.entries(item).map(([name, schema]) => [
          name,
          copy(schema, `${place}/${escapePointer(name)}`, base),
        ]);
        kept.push([keyword, Object.fromEntries(named)]);
      } else kept.push([keyword, copy(item, place, base)]);
    }
    return Object.fromEntries(kept);
  };
  const { root } = document;
  const schema = copy(root.schema, "", root.base) as boolean | JsonObject;
  return { schema, left, refusesValid: left.length > 0 && isTurned };
}

/** @returns a pointer as ajv reads it; null where there is none, or more than one */
function targetOf(
  document: SchemaDocument,
  keyword: string,
  reference: unknown,
  base: string,
): string | null {
  if (typeof reference !== "string") return null;
  if (keyword !== "$ref" && !document.isStatic(reference)) return null;
  const path = document.resolve({ base }, reference)?.path;
  return (
    path
      ?.split("/")
      .map((part, index) => (index === 0 ? part : encodeURIComponent(part)))
      .join("/") ?? null
  );
}
