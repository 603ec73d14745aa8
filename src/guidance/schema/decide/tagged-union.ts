/** Branches that plainly exclude each other, as those of a discriminated union do: seen without expanding them. */

import { isJsonObject } from "../../../json.ts";
import type { SchemaDocument } from "../read/document.ts";
import type { JsonObject, JsonType, Literal, SchemaNode } from "../types.ts";

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

/** By the branch and its tag: each type of values looks at all branches again. */
const known = new WeakMap<SchemaNode, Map<string | undefined, Outline | null>>();

/** @param tag a property that the branch needs, whether it says so or not */
export function outlineOf(
  document: SchemaDocument,
  node: SchemaNode,
  tag: string | undefined,
): Outline | null {
  const outlines = known.get(node) ?? new Map<string | undefined, Outline | null>();
  known.set(node, outlines);
  let outline = outlines.get(tag);
  if (outline === undefined) {
    outline = readOutline(document, node, tag);
    outlines.set(tag, outline);
  }
  return outline;
}

function readOutline(
  document: SchemaDocument,
  node: SchemaNode,
  tag: string | undefined,
): Outline | null {
  const at = referredBy(document, node);
  if (at === null || !isJsonObject(at.schema)) return null;
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

/** What a reference leads to, or the node itself. */
export function referredBy(document: SchemaDocument, node: SchemaNode): SchemaNode | null {
  let at = node;
  for (let count = 0; isJsonObject(at.schema) && typeof at.schema["$ref"] === "string"; count++) {
    const next = document.resolve(at, at.schema["$ref"]);
    if (next === null || count === maxReferences) return null;
    at = next;
  }
  return at;
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

/**
 * What is said of one place, without what other constants say already: where it must be one of some, it is none of the others.
 * @returns null where they leave no value
 */
export function withoutImplied(
  document: SchemaDocument,
  literals: readonly Literal[],
): readonly Literal[] | null {
  let allowed = null as unknown[] | null;
  for (const { node, holds } of literals) {
    const { scalars } = constantsOf(document, node);
    if (holds && scalars !== null)
      allowed = allowed?.filter((value) => scalars.has(value)) ?? [...scalars];
  }
  if (allowed === null) return literals;
  const possible = allowed;
  const left = new Set(allowed);
  const kept = literals.filter(({ node, holds }) => {
    const { scalars, isExact } = constantsOf(document, node);
    if (holds || !isExact || scalars === null) return true;
    const excluded = possible.filter((value) => scalars.has(value));
    for (const value of excluded) left.delete(value);
    return excluded.length > 0;
  });
  return left.size === 0 ? null : kept;
}

interface Constants {
  /** Null: others are values, too. */
  scalars: ReadonlySet<unknown> | null;
  /** Each of them is a value. */
  isExact: boolean;
}

const constants = new WeakMap<SchemaNode, Constants>();
const exactBeside = new Set(["const", "enum", "title", "description", "default", "examples"]);

function constantsOf(document: SchemaDocument, node: SchemaNode): Constants {
  let found = constants.get(node);
  if (found === undefined) {
    found = readConstants(referredBy(document, node) ?? node, node);
    constants.set(node, found);
  }
  return found;
}

function readConstants(at: SchemaNode, node: SchemaNode): Constants {
  const { schema } = at;
  const scalars = isJsonObject(schema) ? scalarsOf(schema) : null;
  if (scalars === null || !isJsonObject(schema)) return { scalars: null, isExact: false };
  const { type } = schema;
  const others = Object.keys(schema).filter((keyword) => !exactBeside.has(keyword));
  const isString = type === "string" && [...scalars].every((value) => typeof value === "string");
  const isExact = others.length === 0 || (isString && others.length === 1);
  const isOne = !("const" in schema && "enum" in schema);
  return { scalars, isExact: at === node && isExact && isOne };
}
