/**
 * A value that a format writes as it is: strings without quotes, everything else as JSON. The parameter's
 * schema tells which; text that the schema takes only as a string streams, anything else is judged at its end.
 */

import { isJsonObject, parseJson } from "../../../json.ts";

export interface ValueOptions {
  schema: unknown;
  /** Stands before each tag of a value that is written as elements. Default: none is. */
  elementMark?: string | undefined;
  /** A line break at its beginning is not the value's, and neither is then one at its end. */
  onLines: boolean;
  emit(text: string): void;
}

export class ParameterValue {
  readonly #options: ValueOptions;
  readonly #types: ReadonlySet<string> | null;
  readonly #streams: boolean;
  #isStart = true;
  #hasLines = false;
  /** A line break that may be the last, or all of a value that does not stream. */
  #held = "";
  #parts: string[] = [];

  constructor(options: ValueOptions) {
    this.#options = options;
    this.#types = typesOf(options.schema);
    this.#streams = this.#types !== null && this.#types.size === 1 && this.#types.has("string");
    if (this.#streams) options.emit('"');
  }

  get isEmpty(): boolean {
    return this.#isStart;
  }

  push(text: string): void {
    for (let i = 0; i < text.length; i++) this.#feed(text.charAt(i));
  }

  end(): void {
    if (this.#streams) this.#options.emit('"');
    else this.#options.emit(this.#judge(this.#parts.join("")));
  }

  #feed(character: string): void {
    const isFirst = this.#isStart;
    this.#isStart = false;
    if (isFirst) this.#hasLines = this.#options.onLines && character === "\n";
    if (this.#hasLines && character === "\n") {
      if (isFirst) return;
      this.#write(this.#held);
      this.#held = character;
      return;
    }
    this.#write(this.#held + character);
    this.#held = "";
  }

  #write(text: string): void {
    if (text === "") return;
    if (this.#streams) this.#options.emit(escape(text));
    else this.#parts.push(text);
  }

  #judge(text: string): string {
    const { elementMark, schema } = this.#options;
    const nested = elementMark === undefined ? undefined : nestedJson(text, elementMark, schema);
    return nested ?? writeValue(text, schema);
  }
}

/** Half a surrogate pair stays as it is: its other half follows. */
function escape(text: string): string {
  let escaped = "";
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    const isHalf = character >= "\ud800" && character <= "\udfff";
    escaped += isHalf ? character : JSON.stringify(character).slice(1, -1);
  }
  return escaped;
}

/**
 * Values written as elements: `<when><date>x</date></when>`, `<tags><item>a</item></tags>`, each tag behind a mark.
 * @returns JSON; undefined where the text has no elements, or is none of them
 */
function nestedJson(text: string, mark: string, schema: unknown): string | undefined {
  const children = elements(text.trim(), mark);
  if (children === undefined || children.length === 0) return undefined;
  const isList = children.every(([tag]) => tag === "item");
  const written = children.map(([tag, inner]) => {
    const own = schemaOfProperty(schema, isList ? null : tag);
    const value = nestedJson(inner, mark, own) ?? writeValue(inner, own);
    return isList ? value : `${JSON.stringify(tag)}:${value}`;
  });
  return isList ? `[${written.join(",")}]` : `{${written.join(",")}}`;
}

/** Undefined: something stands outside of elements. */
function elements(text: string, mark: string): [tag: string, inner: string][] | undefined {
  const found: [string, string][] = [];
  let rest = text;
  while (rest !== "") {
    const tag = rest.startsWith(`${mark}<`)
      ? /^[\w.$-]+(?=>)/u.exec(rest.slice(mark.length + 1))
      : null;
    if (tag === null) return undefined;
    const [open, close] = [`${mark}<${tag[0]}>`, `${mark}</${tag[0]}>`];
    const end = closingAt(rest, open, close);
    if (end < 0) return undefined;
    found.push([tag[0], rest.slice(open.length, end)]);
    rest = rest.slice(end + close.length).trimStart();
  }
  return found;
}

/** Where the element closes that the text begins with, or -1. */
function closingAt(text: string, open: string, close: string): number {
  let depth = 1;
  let at = open.length;
  for (;;) {
    const end = text.indexOf(close, at);
    if (end < 0) return -1;
    const inner = text.indexOf(open, at);
    const isDeeper = inner >= 0 && inner < end;
    depth += isDeeper ? 1 : -1;
    if (depth === 0) return end;
    at = isDeeper ? inner + open.length : end + close.length;
  }
}

const pythonWords: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
};

/** JSON of a text: itself if the schema takes its value, else a string. */
function writeValue(text: string, schema: unknown): string {
  const types = typesOf(schema);
  const trimmed = text.trim();
  const json = pythonWords[trimmed] ?? trimmed;
  const value = parseJson(json);
  const isTaken =
    value !== undefined &&
    typeof value !== "string" &&
    (types === null || types.has(typeOf(value)));
  return isTaken ? json : JSON.stringify(text);
}

/** @param key null: of a list's items */
export function schemaOfProperty(schema: unknown, key: string | null): unknown {
  if (!isJsonObject(schema)) return undefined;
  if (key === null && schema["items"] !== undefined) return schema["items"];
  const { properties } = schema;
  if (key !== null && isJsonObject(properties) && Object.hasOwn(properties, key))
    return properties[key];
  const branches = [schema["anyOf"], schema["oneOf"]].flat();
  return branches.map((branch) => schemaOfProperty(branch, key)).find((own) => own !== undefined);
}

/** JSON types that a schema takes; null when it does not say. */
function typesOf(schema: unknown): ReadonlySet<string> | null {
  if (typeof schema !== "object" || schema === null) return null;
  const { type, enum: values, const: only, anyOf, oneOf } = schema as Record<string, unknown>;
  const types = new Set<string>();
  const add = (name: string): void => {
    types.add(name === "integer" ? "number" : name);
  };
  if (typeof type === "string") add(type);
  else if (Array.isArray(type)) for (const name of type) add(String(name));
  else if (Array.isArray(values)) for (const value of values) add(typeOf(value));
  else if (only !== undefined) add(typeOf(only));
  else {
    for (const branch of [anyOf, oneOf].flat()) {
      if (branch === undefined) continue;
      const inner = typesOf(branch);
      if (inner === null) return null;
      inner.forEach(add);
    }
  }
  return types.size === 0 ? null : types;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
