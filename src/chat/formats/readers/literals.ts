/**
 * Turns arguments written as literals of another language into JSON, a character at a time. Python's are
 * `(city='Rome', days=2, exact=True)`, Gemma's `{city:<escape>Rome<escape>,days:2}`.
 */

import { inJsonString, isBlank } from "./json-scanner.ts";

export interface LiteralSyntax {
  /** Begin and end a string. */
  stringMarks: readonly string[];
  /** A backslash escapes in strings. */
  escapes: boolean;
  /** Between key and value, of arguments and of objects. */
  assigns: string;
}

/** As {@link JsonScanner}'s. */
export type LiteralResult = "more" | "end" | "error";

type Place =
  | "open"
  | "key-or-end"
  | "key"
  | "bare-key"
  | "quoted-key"
  | "assign"
  | "value"
  | "value-or-end"
  | "string"
  | "escape"
  | "code"
  | "word"
  | "after";

const closers: Readonly<Record<string, string>> = { "{": "}", "(": ")", "[": "]" };
const words = new Map([
  ["True", "true"],
  ["False", "false"],
  ["None", "null"],
  ["true", "true"],
  ["false", "false"],
  ["null", "null"],
]);
const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/u;
const escapeCodes: Readonly<Record<string, string>> = {
  n: "\\n",
  t: "\\t",
  r: "\\r",
  b: "\\b",
  f: "\\f",
  "\\": "\\\\",
  '"': '\\"',
  "'": "'",
  "/": "/",
  "\n": "",
};
const codeLengths: Readonly<Record<string, number>> = { x: 2, u: 4 };
const MAX_WORD = 400;

interface Container {
  close: string;
  hasKeys: boolean;
  isArguments: boolean;
}

export class LiteralTranscoder {
  readonly #syntax: LiteralSyntax;
  readonly #emit: (json: string) => void;
  readonly #containers: Container[] = [];
  #place: Place = "open";
  /** What may become a string's mark. */
  #held = "";
  #mark = "";
  #word = "";
  #codeLength = 0;

  constructor(syntax: LiteralSyntax, emit: (json: string) => void) {
    this.#syntax = syntax;
    this.#emit = emit;
  }

  get inString(): boolean {
    return (
      this.#place === "string" ||
      this.#place === "escape" ||
      this.#place === "code" ||
      this.#place === "quoted-key"
    );
  }

  /** The first character opens the arguments: `(` or `{`. Not to be called after `end` or `error`. */
  feed(character: string): LiteralResult {
    switch (this.#place) {
      case "open":
        return this.#open(character, true);
      case "string":
      case "quoted-key":
        return this.#feedString(character);
      case "escape":
        return this.#feedEscape(character);
      case "code":
        return this.#feedCode(character);
      case "word":
      case "bare-key":
        return this.#feedWord(character);
      default:
        if (this.#held === "" && isBlank(character)) return "more";
        return this.#visible(character);
    }
  }

  #visible(character: string): LiteralResult {
    const closes = character === this.#containers.at(-1)?.close;
    const canEnd =
      this.#place === "after" || this.#place === "key-or-end" || this.#place === "value-or-end";
    if (closes && canEnd && this.#held === "") return this.#close();
    switch (this.#place) {
      case "after":
        if (character !== ",") return "error";
        // Python takes a comma before the bracket.
        this.#place = this.#containers.at(-1)?.hasKeys === true ? "key-or-end" : "value-or-end";
        this.#comma = true;
        return "more";
      case "assign":
        return this.#assign(character);
      default:
        return this.#begin(character);
    }
  }

  /** A comma was read whose next item has not come. */
  #comma = false;

  #begin(character: string): LiteralResult {
    const isKey = this.#place === "key-or-end" || this.#place === "key";
    const held = this.#held + character;
    const mark = this.#syntax.stringMarks.find((candidate) => candidate === held);
    this.#held = "";
    if (mark === undefined && this.#syntax.stringMarks.some((other) => other.startsWith(held))) {
      this.#held = held;
      return "more";
    }
    if (this.#comma) this.#emit(",");
    this.#comma = false;
    if (mark !== undefined) {
      this.#mark = mark;
      this.#emit('"');
      this.#place = isKey ? "quoted-key" : "string";
      return "more";
    }
    if (held.length > 1) return "error";
    // Some templates write null as nothing.
    if (!isKey && (character === "," || character === this.#containers.at(-1)?.close)) {
      this.#emit("null");
      this.#place = "after";
      return this.#visible(character);
    }
    if (isKey) {
      this.#word = character;
      this.#place = "bare-key";
      return "more";
    }
    if (character in closers) return this.#open(character, false);
    this.#word = character;
    this.#place = "word";
    return /[\w+\-.]/u.test(character) ? "more" : "error";
  }

  #open(character: string, isArguments: boolean): LiteralResult {
    const close = closers[character];
    if (close === undefined) return "error";
    const hasKeys = isArguments || character === "{";
    this.#containers.push({ close, hasKeys, isArguments });
    this.#emit(hasKeys ? "{" : "[");
    this.#place = hasKeys ? "key-or-end" : "value-or-end";
    return "more";
  }

  #close(): LiteralResult {
    this.#comma = false;
    const container = this.#containers.pop();
    this.#emit(container?.hasKeys === true ? "}" : "]");
    this.#place = "after";
    return this.#containers.length === 0 ? "end" : "more";
  }

  #assign(character: string): LiteralResult {
    const isArguments = this.#containers.at(-1)?.isArguments === true;
    if (character !== (isArguments ? this.#syntax.assigns : ":")) return "error";
    this.#emit(":");
    this.#place = "value";
    return "more";
  }

  #feedWord(character: string): LiteralResult {
    const isKey = this.#place === "bare-key";
    const container = this.#containers.at(-1);
    const ends = isKey
      ? character === (container?.isArguments === true ? this.#syntax.assigns : ":")
      : character === "," || character === container?.close;
    if (!ends) {
      this.#word += character;
      return this.#word.length > MAX_WORD ? "error" : "more";
    }
    const word = this.#word.trim();
    if (isKey) {
      this.#emit(JSON.stringify(word));
      this.#place = "assign";
    } else {
      // A bare word is no literal of any language; the tool's schema judges the string.
      this.#emit(words.get(word) ?? (number.test(word) ? word : JSON.stringify(word)));
      this.#place = "after";
    }
    return this.#visible(character);
  }

  #feedString(character: string): LiteralResult {
    const held = this.#held + character;
    this.#held = "";
    if (held === this.#mark) {
      this.#emit('"');
      this.#place = this.#place === "quoted-key" ? "assign" : "after";
      return "more";
    }
    if (this.#mark.startsWith(held)) {
      this.#held = held;
      return "more";
    }
    const [first = "", ...rest] = held;
    if (first === "\\" && this.#syntax.escapes) {
      this.#isKey = this.#place === "quoted-key";
      this.#place = "escape";
      return "more";
    }
    this.#emit(inJsonString(first));
    for (const other of rest) {
      const result = this.#feedString(other);
      if (result !== "more") return result;
    }
    return "more";
  }

  #isKey = false;

  #feedEscape(character: string): LiteralResult {
    this.#place = this.#isKey ? "quoted-key" : "string";
    const length = codeLengths[character];
    if (length !== undefined) {
      this.#codeLength = length;
      this.#word = "";
      this.#place = "code";
    } else this.#emit(escapeCodes[character] ?? JSON.stringify(`\\${character}`).slice(1, -1));
    return "more";
  }

  #feedCode(character: string): LiteralResult {
    this.#word += character;
    if (!/[0-9a-fA-F]/u.test(character)) return "error";
    if (this.#word.length < this.#codeLength) return "more";
    this.#emit(`\\u${this.#word.padStart(4, "0")}`);
    this.#place = this.#isKey ? "quoted-key" : "string";
    return "more";
  }
}
