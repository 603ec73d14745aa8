/**
 * A value that a format writes as it is: strings without quotes, everything else as JSON. The parameter's
 * schema tells which; text that the schema takes only as a string streams, anything else is judged at its end.
 */

import { parseJson } from "../../../json.ts";
import { inJsonString, JsonScanner, isBlank } from "./json-scanner.ts";
import { type PlacedSchema, partOf, typeOf, typesOf } from "./value-schema.ts";

export interface ValueOptions {
  /** Null: not known. */
  schema: PlacedSchema | null;
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
  /** Of a value that can only be an object or a list; null: it is none. */
  #json: JsonScanner | null;
  #last = "";
  #hasLines = false;
  /** A line break that may be the last, or all of a value that does not stream. */
  #held = "";
  #parts: string[] = [];

  constructor(options: ValueOptions) {
    this.#options = options;
    this.#types = typesOf(options.schema);
    this.#streams = this.#types !== null && this.#types.size === 1 && this.#types.has("string");
    this.#json = this.#types === null || this.#types.has("string") ? null : new JsonScanner();
    if (this.#streams) options.emit('"');
  }

  get isEmpty(): boolean {
    return this.#last === "";
  }

  /** It ends with a line break. */
  get isLineStart(): boolean {
    return this.#last === "\n";
  }

  get inJsonString(): boolean {
    return this.#json?.inString === true;
  }

  push(text: string): void {
    for (let i = 0; i < text.length; i++) this.#feed(text.charAt(i));
  }

  end(): void {
    if (this.#streams) this.#options.emit('"');
    else this.#options.emit(this.#judge(this.#parts.join("")));
  }

  #feed(character: string): void {
    const isFirst = this.#last === "";
    this.#last = character;
    this.#scan(character);
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

  #scan(character: string): void {
    if (this.#json === null) return;
    const begins = this.#json.hasBegun || isBlank(character) || "{[".includes(character);
    if (!begins || this.#json.feed(character) !== "more") this.#json = null;
  }

  #write(text: string): void {
    if (text === "") return;
    if (this.#streams) this.#options.emit(text.split("").map(inJsonString).join(""));
    else this.#parts.push(text);
  }

  #judge(text: string): string {
    const { elementMark, schema } = this.#options;
    const nested = elementMark === undefined ? undefined : nestedJson(text, elementMark, schema);
    return nested ?? writeValue(text, schema);
  }
}

/**
 * Values written as elements: `<when><date>x</date></when>`, `<tags><item>a</item></tags>`, each tag behind a mark.
 * @returns JSON; undefined where the text has no elements, or is none of them
 */
function nestedJson(text: string, mark: string, schema: PlacedSchema | null): string | undefined {
  const children = elements(text.trim(), mark);
  if (children === undefined || children.length === 0) return undefined;
  const isList = children.every(([tag]) => tag === "item");
  const written = children.map(([tag, inner]) => {
    const own = partOf(schema, isList ? null : tag);
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
function writeValue(text: string, schema: PlacedSchema | null): string {
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
