/**
 * A value that a format writes as it is: strings without quotes, everything else as JSON. The parameter's
 * schema tells which; text that the schema takes only as a string streams, anything else is judged at its end.
 */

import { nestedJson } from "./nested-value.ts";
import { typesOf, writeValue } from "./typed-value.ts";

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
