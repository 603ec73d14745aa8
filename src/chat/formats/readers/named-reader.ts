/** Reads a name, a marker, and the arguments as one JSON value. */

import { JsonScanner, isBlank } from "./json-scanner.ts";
import type { CallReader, CallSink, ReaderState } from "./reader.ts";

export interface NamedCalls {
  /** Ends the name. */
  nameClose: string;
  /** Its first group is the name, in what stands before that marker. Default: all of it. */
  name?: RegExp;
  /** A character that stands behind the arguments; brackets that are open there were forgotten. */
  behind?: string;
}

/** A longer name is none. */
const MAX_HEADER = 256;

export class NamedReader implements CallReader {
  readonly #sink: CallSink;
  readonly #calls: NamedCalls;
  readonly #scanner = new JsonScanner();
  #state: ReaderState = "undecided";
  #place: "header" | "before" | "value" | "malformed" = "header";
  #header = "";
  /** Blanks that are the arguments' only if something follows. */
  #blanks = "";

  constructor(sink: CallSink, calls: NamedCalls) {
    this.#sink = sink;
    this.#calls = calls;
  }

  get state(): ReaderState {
    return this.#state;
  }

  get inString(): boolean {
    return this.#place === "value" && this.#scanner.inString;
  }

  feed(character: string): boolean {
    if (this.#place === "header") return this.#feedHeader(character);
    if (this.#place === "before") {
      if (isBlank(character)) return true;
      this.#place = "value";
    }
    if (this.#place === "value") return this.#feedValue(character);
    if (isBlank(character)) this.#blanks += character;
    else {
      this.#sink.arguments(this.#blanks + character);
      this.#blanks = "";
    }
    return true;
  }

  close(): void {
    if (this.#state === "undecided") this.#state = "refused";
    if (this.#state !== "call") return;
    if (this.#place === "before") this.#sink.arguments("{}");
    if (this.#place === "value") this.#sink.arguments(this.#scanner.missing);
    this.#end();
  }

  #feedHeader(character: string): boolean {
    const header = this.#header + character;
    this.#header = header;
    if (header.length > MAX_HEADER) this.#state = "refused";
    if (!header.endsWith(this.#calls.nameClose)) return this.#state !== "refused";
    const { nameClose, name: pattern } = this.#calls;
    const before = header.slice(0, -nameClose.length);
    const name = asName(pattern === undefined ? before : (pattern.exec(before)?.[1] ?? ""));
    if (name === null) {
      this.#state = "refused";
      return false;
    }
    this.#state = "call";
    this.#place = "before";
    this.#sink.start(name);
    return true;
  }

  #feedValue(character: string): boolean {
    if (character === this.#calls.behind && this.#scanner.missing !== "") {
      this.close();
      return false;
    }
    for (const piece of this.#scanner.repaired(character)) {
      const result = this.#scanner.feed(piece);
      if (result === "end-before") {
        this.#end();
        return false;
      }
      if (result === "error") this.#place = "malformed";
      this.#sink.arguments(piece);
      if (result === "end") this.#end();
    }
    return true;
  }

  #end(): void {
    this.#state = "done";
    this.#sink.end();
  }
}

/** Names as OpenAI and MCP allow them. */
export function asName(text: string): string | null {
  const name = text.trim();
  return /^[\w.:/-]{1,128}$/u.test(name) ? name : null;
}
