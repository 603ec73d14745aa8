/** Branches that plainly exclude each other, as those of a discriminated union do: seen without expanding them. */

import { isJsonObject } from "../../../json.ts";
import type { SchemaDocument } from "../read/document.ts";
import type { JsonObject, JsonType, SchemaNode } from "../types.ts";

const maxReferences = 8;

/** What a branch says of its own kind. */
interface Outline {
  /** Undefined: any. */
  types: readonly unknown[] | undefined;
  required: ReadonlySet<unknown>;
  /** Scalars that a property may be. */
  values: ReadonlyMap<string, ReadonlySet<unknown>>;
}

/** The property that OpenAPI's `discriminator` names. */
export function tagNameOf({ discriminator }: JsonObject): string | undefined {
  const name = isJsonObject(discriminator) ? discriminator["propertyName"] : undefined;
  return typeof name === "string" ? name : undefined;
}

/** @param tag a property that the branch needs, whether it says so or not */
export function outlineOf(
  document: SchemaDocument,
  node: SchemaNode,
  tag: string | undefined,
): Outline | null {
  let at = node;
  for (let count = 0; isJsonObject(at.schema) && typeof at.schema["$ref"] === "string"; count++) {
    const next = document.resolve(at, at.schema["$ref"]);
    if (next === null || count === maxReferences) return null;
    at = next;
  }
  if (!isJsonObject(at.schema)) return null;
  const { required, properties, type } = at.schema;
  return {
    types: type === undefined ? undefined : Array.isArray(type) ? type : [type],
    required: new Set([
      ...(Array.isArray(required) ? required : []),
      ...(tag === undefined ? [] : [tag]),
    ]),
    values: new Map(
      Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([name, property]) => {
        const values = isJsonObject(property) ? scalarsOf(property) : null;
        return values === null ? [] : [[name, values] as const];
      }),
    ),
  };
}

function scalarsOf(schema: JsonObject): ReadonlySet<unknown> | null {
  const values = "const" in schema ? [schema["const"]] : schema["enum"];
  if (!Array.isArray(values) || values.some((value) => typeof value === "object" && value !== null))
    return null;
  return new Set(values);
}

export function mayBe(outline: Outline | null, type: JsonType): boolean {
  const types = outline?.types;
  return (
    types === undefined || types.includes(type) || (type === "number" && types.includes("integer"))
  );
}

/** Do all branches need a property that tells each from the others? Only for values of type object. */
export function haveTag(outlines: readonly (Outline | null)[]): boolean {
  const names = [...(outlines[0]?.values.keys() ?? [])];
  return names.some((name) => {
    const taken = new Set<unknown>();
    return outlines.every((outline) => {
      const values = outline?.values.get(name);
      if (values === undefined || outline?.required.has(name) !== true) return false;
      return [...values].every((value) => !taken.has(value) && taken.add(value));
    });
  });
}

/** Only for values of type object. */
export function areDisjointObjects(a: Outline | null, b: Outline | null): boolean {
  if (a === null || b === null) return false;
  for (const [name, values] of a.values) {
    const others = b.values.get(name);
    if (others === undefined || (!a.required.has(name) && !b.required.has(name))) continue;
    if (![...values].some((value) => others.has(value))) return true;
  }
  return false;
}
