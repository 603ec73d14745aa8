/** A schema document: bounded, its subschemas as numbered nodes, its references resolved. */

import { FermataError } from "../../../errors.ts";
import { isJsonObject } from "../../../json.ts";
import type { Draft, JsonObject, SchemaNode } from "../types.ts";
import { modernSchema, plainKeywords } from "./draft.ts";

/** JSON values in a schema, their nesting, and the characters of all strings together. */
const limits = { values: 200_000, depth: 100, characters: 2 * 1024 * 1024 };

const rootBase = "schema:///root";

export class SchemaDocument {
  readonly draft: Draft;
  readonly root: SchemaNode;
  readonly #value: unknown;
  readonly #nodes = new Map<string, SchemaNode>();
  readonly #made = new Map<string, SchemaNode>();
  /** Absolute URI without fragment: pointer of the resource's root. */
  readonly #resources = new Map<string, string>();
  /** Absolute URI with plain-name fragment: pointer. */
  readonly #anchors = new Map<string, string>();
  readonly #dynamicNames = new Map<string, number>();
  /** Pointer: URI that it resets the base to. */
  readonly #bases = new Map<string, string>();
  #nextId = 0;

  /** @throws FermataError schema_too_large | invalid_schema */
  constructor(value: unknown) {
    if (typeof value !== "boolean" && !isJsonObject(value))
      throw new FermataError("invalid_schema", "A JSON Schema is an object or a boolean.");
    checkSchemaSize(value);
    const { schema, draft } = modernSchema(value);
    this.#value = schema;
    this.draft = draft;
    this.#resources.set(rootBase, "");
    this.#collect(schema, "", rootBase);
    this.root = this.#at("", schema, this.baseAt("", rootBase));
  }

  /** The subschema under `keys`, which must be there. */
  child(parent: SchemaNode, ...keys: (string | number)[]): SchemaNode {
    let value: unknown = parent.schema;
    let pointer = parent.path.slice(1);
    for (const key of keys) {
      value = (value as JsonObject)[key];
      pointer += `/${escapePointer(String(key))}`;
    }
    if (parent.isMade) return this.make(value, `#${pointer}`, parent.base);
    return this.#at(pointer, value, this.baseAt(pointer, parent.base));
  }

  /** A node for a schema that is not in the document; equal ones are the same node. */
  make(schema: unknown, path: string, base: string = rootBase): SchemaNode {
    const key = `${base} ${path} ${JSON.stringify(schema)}`;
    let node = this.#made.get(key);
    if (node === undefined) {
      node = { id: this.#nextId++, schema: asSchema(schema, path), path, base, isMade: true };
      this.#made.set(key, node);
    }
    return node;
  }

  /** @returns null when the reference leads out of the document or to nothing */
  resolve(from: { base: string }, reference: string): SchemaNode | null {
    const absolute = resolveUri(reference, from.base);
    if (absolute === null) return null;
    const [resource = "", fragment = ""] = splitFragment(absolute);
    if (fragment !== "" && !fragment.startsWith("/")) {
      const anchored = this.#anchors.get(`${resource}#${fragment}`);
      return anchored === undefined ? null : this.#atPointer(anchored);
    }
    const start = this.#resources.get(resource);
    if (start === undefined) return null;
    return this.#atPointer(start + decodeFragment(fragment));
  }

  /** What references at this place are relative to. */
  baseAt(pointer: string, outer: string): string {
    return this.#bases.get(pointer) ?? outer;
  }

  /** `$dynamicRef` is `$ref` where its name has one meaning in the whole document. */
  isStatic(reference: string): boolean {
    const name = reference.split("#", 2)[1] ?? "";
    return (this.#dynamicNames.get(name) ?? 0) <= 1;
  }

  #at(pointer: string, value: unknown, base: string): SchemaNode {
    let node = this.#nodes.get(pointer);
    if (node === undefined) {
      const path = `#${pointer}`;
      node = { id: this.#nextId++, schema: asSchema(value, path), path, base, isMade: false };
      this.#nodes.set(pointer, node);
    }
    return node;
  }

  #atPointer(pointer: string): SchemaNode | null {
    let value: unknown = this.#value;
    let base = this.baseAt("", rootBase);
    let walked = "";
    for (const part of pointer === "" ? [] : pointer.slice(1).split("/")) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return null;
      value = (value as JsonObject)[key];
      walked += `/${part}`;
      base = this.baseAt(walked, base);
    }
    if (typeof value !== "boolean" && !isJsonObject(value)) return null;
    return this.#at(pointer, value, base);
  }

  /** Identifiers and anchors. Depth is bounded by `checkSchemaSize`. */
  #collect(value: unknown, pointer: string, outer: string): void {
    if (Array.isArray(value)) {
      value.forEach((item, index) => this.#collect(item, `${pointer}/${index}`, outer));
      return;
    }
    if (!isJsonObject(value)) return;
    const base = this.#collectNames(value, pointer, outer);
    for (const [key, item] of Object.entries(value)) {
      if (!plainKeywords.has(key)) this.#collect(item, `${pointer}/${escapePointer(key)}`, base);
    }
  }

  #collectNames(schema: JsonObject, pointer: string, outer: string): string {
    let base = outer;
    const { $id, $anchor, $dynamicAnchor } = schema;
    const isIgnored = this.draft === "draft-07" && "$ref" in schema;
    if (typeof $id === "string" && !isIgnored) {
      const [resource = "", name = ""] = splitFragment(resolveUri($id, outer) ?? outer);
      if ($id.startsWith("#")) this.#anchors.set(`${outer}#${name}`, pointer);
      else {
        base = resource;
        this.#resources.set(resource, pointer);
        this.#bases.set(pointer, resource);
      }
    }
    if (typeof $anchor === "string") this.#anchors.set(`${base}#${$anchor}`, pointer);
    if (typeof $dynamicAnchor === "string") {
      this.#anchors.set(`${base}#${$dynamicAnchor}`, pointer);
      this.#dynamicNames.set($dynamicAnchor, (this.#dynamicNames.get($dynamicAnchor) ?? 0) + 1);
    }
    return base;
  }
}

export function escapePointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function asSchema(value: unknown, path: string): boolean | JsonObject {
  if (typeof value === "boolean" || isJsonObject(value)) return value;
  throw new FermataError(
    "invalid_schema",
    `At ${path} there must be a schema: an object or a boolean.`,
  );
}

/**
 * Without recursion: what comes in may be nested a hundred thousand deep.
 * @throws FermataError schema_too_large
 */
export function checkSchemaSize(value: unknown): void {
  let level: unknown[] = [value];
  let values = 0;
  let characters = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.depth) throw tooLarge(`is nested more than ${limits.depth} levels deep`);
    const next: unknown[] = [];
    for (const item of level) {
      values += 1;
      if (typeof item === "string") characters += item.length;
      if (typeof item !== "object" || item === null) continue;
      for (const [key, child] of Object.entries(item)) {
        characters += key.length;
        next.push(child);
      }
      if (values + next.length > limits.values)
        throw tooLarge(`has more than ${limits.values} values`);
    }
    if (characters > limits.characters)
      throw tooLarge(`has more than ${limits.characters} characters of text`);
    level = next;
  }
}

function tooLarge(problem: string): FermataError {
  return new FermataError("schema_too_large", `The schema ${problem}. Send a smaller one.`);
}

function resolveUri(reference: string, base: string): string | null {
  try {
    return new URL(reference, base).href;
  } catch {
    if (reference.startsWith("#")) return `${base}${reference}`;
    return null;
  }
}

function splitFragment(uri: string): [string, string] {
  const at = uri.indexOf("#");
  return at < 0 ? [uri, ""] : [uri.slice(0, at), uri.slice(at + 1)];
}

function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}
