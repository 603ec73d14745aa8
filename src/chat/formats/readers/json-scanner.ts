/** Checks one JSON value, one character at a time, with constant work per character. Keeps the open brackets, nothing else. */

type State =
  | "value"
  | "value-or-end"
  | "key"
  | "key-or-end"
  | "colon"
  | "comma-or-end"
  | "string"
  | "escape"
  | "unicode"
  | "literal"
  | "number"
  | "done"
  | "error";

/** `end`: the character is the value's last. `end-before`: the value, a number, ended before it. */
export type ScanResult = "more" | "end" | "end-before" | "error";

const literals: Readonly<Record<string, string>> = { t: "true", f: "false", n: "null" };
const wholeNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/u;
/** Bounds the work of a number; a double has no more digits worth telling. */
const MAX_NUMBER = 400;

export function isBlank(character: string): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}

/** A character as it stands in a string of JSON. Half a surrogate pair stays as it is: its other half follows. */
export function inJsonString(character: string): string {
  const isHalf = character >= "\ud800" && character <= "\udfff";
  return isHalf ? character : JSON.stringify(character).slice(1, -1);
}

export class JsonScanner {
  #state: State = "value";
  #inKey = false;
  readonly #brackets: string[] = [];
  /** Of a literal: what is missing. Of a number or a \u escape: what was read. */
  #word = "";

  get inString(): boolean {
    return this.#state === "string" || this.#state === "escape" || this.#state === "unicode";
  }

  /** What to feed for a character: models write line breaks into strings, and JSON wants them escaped. */
  repaired(character: string): string {
    return this.inString && character < " " ? inJsonString(character) : character;
  }

  /** Something of the value was read. */
  get hasBegun(): boolean {
    return this.#state !== "value" || this.#brackets.length > 0;
  }

  /** The brackets that are left to close where nothing else is missing; else, and in a complete value, "". */
  get missing(): string {
    const isWhole =
      this.#state === "comma-or-end" ||
      this.#state === "key-or-end" ||
      this.#state === "value-or-end" ||
      (this.#state === "number" && wholeNumber.test(this.#word));
    if (!isWhole) return "";
    return this.#brackets
      .map((bracket) => (bracket === "{" ? "}" : "]"))
      .reverse()
      .join("");
  }

  /** Not to be called once it said anything but `more`. */
  feed(character: string): ScanResult {
    const before = this.#state;
    this.#state = this.#next(character);
    if (this.#state === "error") return "error";
    if (this.#brackets.length > 0 || this.#state !== "comma-or-end")
      return this.#state === "done" ? "end" : "more";
    return before === "number" ? "end-before" : "end";
  }

  #next(character: string): State {
    switch (this.#state) {
      case "string":
        if (character === '"') return this.#inKey ? "colon" : "comma-or-end";
        if (character === "\\") return "escape";
        return character < " " ? "error" : "string";
      case "escape":
        this.#word = "";
        if (character === "u") return "unicode";
        return '"\\/bfnrt'.includes(character) ? "string" : "error";
      case "unicode":
        this.#word += character;
        if (!/[0-9a-fA-F]/u.test(character)) return "error";
        return this.#word.length === 4 ? "string" : "unicode";
      case "literal":
        if (character !== this.#word[0]) return "error";
        this.#word = this.#word.slice(1);
        return this.#word === "" ? "comma-or-end" : "literal";
      case "number":
        return this.#number(character);
      case "done":
      case "error":
        return "error";
      default:
        return isBlank(character) ? this.#state : this.#visible(character, this.#state);
    }
  }

  #visible(character: string, state: State): State {
    switch (state) {
      case "key":
      case "key-or-end":
        if (character === '"') return this.#string(true);
        return character === "}" && state === "key-or-end" ? this.#close("{") : "error";
      case "colon":
        return character === ":" ? "value" : "error";
      case "comma-or-end":
        if (character === ",") return this.#brackets.at(-1) === "{" ? "key" : "value";
        if (character === "}") return this.#close("{");
        return character === "]" ? this.#close("[") : "error";
      case "value-or-end":
        return character === "]" ? this.#close("[") : this.#value(character);
      default:
        return this.#value(character);
    }
  }

  #value(character: string): State {
    if (character === "{" || character === "[") {
      this.#brackets.push(character);
      return character === "{" ? "key-or-end" : "value-or-end";
    }
    if (character === '"') return this.#string(false);
    const literal = literals[character];
    this.#word = literal === undefined ? character : literal.slice(1);
    if (literal !== undefined) return "literal";
    return character === "-" || (character >= "0" && character <= "9") ? "number" : "error";
  }

  #number(character: string): State {
    if (/[-+.eE0-9]/u.test(character)) {
      this.#word += character;
      return this.#word.length > MAX_NUMBER ? "error" : "number";
    }
    if (!wholeNumber.test(this.#word)) return "error";
    // Outside of brackets whatever follows belongs to the caller.
    if (this.#brackets.length === 0 || isBlank(character)) return "comma-or-end";
    return this.#visible(character, "comma-or-end");
  }

  #string(isKey: boolean): State {
    this.#inKey = isKey;
    return "string";
  }

  #close(bracket: string): State {
    if (this.#brackets.pop() !== bracket) return "error";
    return this.#brackets.length === 0 ? "done" : "comma-or-end";
  }
}
