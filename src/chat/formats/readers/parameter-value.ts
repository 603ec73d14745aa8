/**
 * A value that a format writes as it is: strings without quotes, everything else as JSON. The parameter's
 * schema tells which; text that the schema takes only as a string streams, anything else is judged at its end.
 */

export interface ValueOptions {
  schema: unknown;
  /** One line break at each end is not the value's. */
  onLines: boolean;
  emit(text: string): void;
}

export class ParameterValue {
  readonly #options: ValueOptions;
  readonly #types: ReadonlySet<string> | null;
  readonly #streams: boolean;
  #isStart = true;
  /** A line break that may be the last, or all of a value that does not stream. */
  #held = "";
  #parts: string[] = [];

  constructor(options: ValueOptions) {
    this.#options = options;
    this.#types = typesOf(options.schema);
    this.#streams = this.#types !== null && this.#types.size === 1 && this.#types.has("string");
    if (this.#streams) options.emit('"');
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
    if (this.#options.onLines && character === "\n") {
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
    const trimmed = text.trim();
    const json = pythonWords[trimmed] ?? trimmed;
    const value = parse(json);
    const isTaken =
      value !== undefined &&
      typeof value !== "string" &&
      (this.#types === null || this.#types.has(typeOf(value)));
    return isTaken ? json : JSON.stringify(text);
  }
}

const pythonWords: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
};

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

function parse(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
