/** A schema document: bounded, its subschemas as numbered nodes, its references resolved. */

import { FermataError } from "../../../errors.ts";
import { isJsonObject } from "../../../json.ts";
import type { Draft, JsonObject, SchemaNode } from "../types.ts";
import { Contents } from "./contents.ts";
import { modernSchema, plainKeywords } from "./draft.ts";
import { withMetaSchemas } from "./meta-schemas.ts";

/** JSON values in a schema, their nesting, and the characters of all strings together. */
const limits = { values: 200_000, depth: 100, characters: 2 * 1024 * 1024 };

const rootBase = "schema:///root";

/** For names that more than one resource has a dynamic anchor of: where that of the outermost resource is. */
type DynamicScope = ReadonlyMap<string, string>;

export class SchemaDocument {
  readonly draft: Draft;
  /** What `contains` finds counts as evaluated from 2020-12 on. */
  readonly isOf2019: boolean;
  readonly root: SchemaNode;
  readonly #value: unknown;
  readonly #contents = new Contents();
  /** By what they say and where their references lead. */
  readonly #nodes = new Map<string, SchemaNode>();
  readonly #made = new Map<string, SchemaNode>();
  readonly #children = new WeakMap<object, Map<string, SchemaNode>>();
  readonly #targets = new WeakMap<object, Map<string, SchemaNode | null>>();
  /** Absolute URI without fragment: pointer of the resource's root. */
  readonly #resources = new Map<string, string>();
  /** Absolute URI with plain-name fragment: pointer. */
  readonly #anchors = new Map<string, string>();
  /** Absolute URI without fragment: pointers of its dynamic anchors by name, which is "" for `$recursiveAnchor`. */
  readonly #dynamicAnchors = new Map<string, Map<string, string>>();
  /** How many resources have one of this name. */
  readonly #dynamicNames = new Map<string, number>();
  readonly #scopes = new Map<string, DynamicScope>([["", new Map()]]);
  /** Pointer: URI that it resets the base to. */
  readonly #bases = new Map<string, string>();
  #nextId = 0;

  /** @throws FermataError schema_too_large | invalid_schema */
  constructor(value: unknown) {
    if (typeof value !== "boolean" && !isJsonObject(value))
      throw new FermataError("invalid_schema", "A JSON Schema is an object or a boolean.");
    checkSchemaSize(value);
    const modern = modernSchema(value);
    const schema = withMetaSchemas(modern.schema);
    this.#value = schema;
    this.draft = modern.draft;
    this.isOf2019 = isJsonObject(value) && String(value["$schema"]).includes("2019-09");
    this.#resources.set(rootBase, "");
    this.#collect(schema, "", rootBase);
    this.root = this.#at("", schema, this.baseAt("", rootBase), "");
  }

  /** The subschema under `keys`, which must be there. */
  child(parent: SchemaNode, ...keys: (string | number)[]): SchemaNode {
    return remembered(this.#children, parent, keys.join(" "), () => this.#childAt(parent, keys));
  }

  #childAt(parent: SchemaNode, keys: readonly (string | number)[]): SchemaNode {
    let value: unknown = parent.schema;
    let pointer = parent.path.slice(1);
    for (const key of keys) {
      value = (value as JsonObject)[key];
      pointer += `/${escapePointer(String(key))}`;
    }
    if (parent.isMade) return this.make(value, `#${pointer}`, parent.base);
    return this.#at(pointer, value, this.baseAt(pointer, parent.base), parent.scope);
  }

  /** A node for a schema that is not in the document; equal ones are the same node. */
  make(schema: unknown, path: string, base: string = rootBase): SchemaNode {
    const key = `${base} ${path} ${JSON.stringify(schema)}`;
    let node = this.#made.get(key);
    if (node === undefined) {
      const id = this.#nextId++;
      node = { id, schema: asSchema(schema, path), path, base, scope: "", isMade: true };
      this.#made.set(key, node);
    }
    return node;
  }

  /** @returns null when the reference leads out of the document or to nothing */
  resolve(from: { base: string; scope?: string }, reference: string): SchemaNode | null {
    return remembered(this.#targets, from, reference, () => this.#targetOf(from, reference));
  }

  #targetOf(
    { base, scope = "" }: { base: string; scope?: string },
    reference: string,
  ): SchemaNode | null {
    const absolute = resolveUri(reference, base);
    if (absolute === null) return null;
    const [resource = "", fragment = ""] = splitFragment(absolute);
    if (fragment !== "" && !fragment.startsWith("/")) {
      const anchored = this.#anchors.get(`${resource}#${fragment}`);
      return anchored === undefined ? null : this.#atPointer(anchored, scope);
    }
    const start = this.#resources.get(resource);
    if (start === undefined) return null;
    return this.#atPointer(start + decodeFragment(fragment), scope);
  }

  /**
   * `$dynamicRef` and `$recursiveRef` lead to the anchor of the outermost resource on the way here that has one of the name,
   * if they lead to such an anchor by themselves.
   * @returns as `resolve`
   */
  resolveDynamic(from: SchemaNode, reference: string): SchemaNode | null {
    const target = this.resolve(from, reference);
    const [, name = ""] = splitFragment(reference);
    const pointer = target && this.#dynamicAnchors.get(target.base)?.get(name);
    if (pointer !== target?.path.slice(1)) return target;
    const outermost = this.#scopes.get(from.scope)!.get(name);
    return outermost === undefined ? target : this.#atPointer(outermost, from.scope);
  }

  /** What references at this place are relative to. */
  baseAt(pointer: string, outer: string): string {
    return this.#bases.get(pointer) ?? outer;
  }

  /** `$dynamicRef` is `$ref` where its name has one meaning in the whole document. */
  isStatic(reference: string): boolean {
    const [, name = ""] = splitFragment(reference);
    return (this.#dynamicNames.get(name) ?? 0) <= 1;
  }

  /** @returns the scope inside of a resource that is entered from this one */
  #entered(base: string, scope: string): string {
    const names = this.#dynamicAnchors.get(base);
    if (names === undefined) return scope;
    const outer = this.#scopes.get(scope)!;
    const more = [...names].filter(
      ([name]) => !outer.has(name) && this.#dynamicNames.get(name)! > 1,
    );
    if (more.length === 0) return scope;
    const inner = new Map([...outer, ...more]);
    const key = JSON.stringify([...inner].toSorted());
    this.#scopes.set(key, inner);
    return key;
  }

  #at(pointer: string, value: unknown, base: string, outer: string): SchemaNode {
    const scope = this.#entered(base, outer);
    const key = `${this.#contents.numberOf(value)} ${base} ${scope}`;
    let node = this.#nodes.get(key);
    if (node === undefined) {
      const path = `#${pointer}`;
      const id = this.#nextId++;
      node = { id, schema: asSchema(value, path), path, base, scope, isMade: false };
      this.#nodes.set(key, node);
    }
    return node;
  }

  #atPointer(pointer: string, scope: string): SchemaNode | null {
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
    return this.#at(pointer, value, base, scope);
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
    const { $id, $anchor, $dynamicAnchor, $recursiveAnchor } = schema;
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
      this.#addDynamic(base, $dynamicAnchor, pointer);
    }
    if ($recursiveAnchor === true && this.#resources.get(base) === pointer)
      this.#addDynamic(base, "", pointer);
    return base;
  }

  #addDynamic(base: string, name: string, pointer: string): void {
    const names = this.#dynamicAnchors.get(base) ?? new Map<string, string>();
    if (!names.has(name)) this.#dynamicNames.set(name, (this.#dynamicNames.get(name) ?? 0) + 1);
    this.#dynamicAnchors.set(base, names.set(name, pointer));
  }
}

export function escapePointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Of a node, by what is asked of it: looked up again and again. */
function remembered<Value>(
  all: WeakMap<object, Map<string, Value>>,
  of: object,
  key: string,
  find: () => Value,
): Value {
  let known = all.get(of);
  if (known === undefined) all.set(of, (known = new Map()));
  let value = known.get(key);
  if (value === undefined) {
    value = find();
    known.set(key, value);
  }
  return value;
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
