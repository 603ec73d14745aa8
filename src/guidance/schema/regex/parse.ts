/**
 * Regular expressions of JSON Schema (ECMA-262 with the `u` flag) as a tree: what is regular, for
 * masks; what is not (look-around, back-references, word boundaries) is refused by name.
 */

export type Regex =
  | { kind: "empty" }
  | { kind: "set"; ranges: readonly Range[]; properties: readonly string[]; negated: boolean }
  | { kind: "concat"; parts: readonly Regex[] }
  | { kind: "or"; options: readonly Regex[] }
  | { kind: "repeat"; body: Regex; min: number; max: number }
  | { kind: "start" }
  | { kind: "end" };

/** Code points, both ends included. */
export type Range = readonly [first: number, last: number];

export class RegexError extends SyntaxError {}

export const maxRegexLength = 2000;
/** Positions in the expression once its counted repetitions are written out. */
export const maxRegexSize = 20_000;

const LAST = 0x10ffff;
const digits: Range[] = [[48, 57]];
const wordCharacters: Range[] = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
];
const blanks: Range[] = [
  [9, 13],
  [32, 32],
  [160, 160],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const lineEnds: Range[] = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const controls: Record<string, number> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };

/** @throws RegexError with what is wrong or not regular, to follow "the pattern" */
export function parseRegex(source: string): Regex {
  if (source.length > maxRegexLength)
    throw new RegexError(`is longer than ${maxRegexLength} characters`);
  const regex = new Parser(source).parse();
  if (sizeOf(regex) > maxRegexSize)
    throw new RegexError(`repeats more than ${maxRegexSize} positions`);
  return regex;
}

/** Positions, once counted repetitions are written out. */
export function sizeOf(regex: Regex): number {
  switch (regex.kind) {
    case "concat":
      return regex.parts.reduce((sum, part) => sum + sizeOf(part), 0);
    case "or":
      return regex.options.reduce((sum, option) => sum + sizeOf(option), 0);
    case "repeat":
      return (
        Math.max(1, sizeOf(regex.body)) *
        Math.max(1, Number.isFinite(regex.max) ? regex.max : regex.min)
      );
    default:
      return 1;
  }
}

const MAX_NESTING = 100;

class Parser {
  readonly #characters: string[];
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#characters = Array.from(source);
  }

  parse(): Regex {
    const regex = this.#alternatives();
    if (this.#at < this.#characters.length) throw new RegexError('has a ")" too many');
    return regex;
  }

  #peek(offset = 0): string {
    return this.#characters[this.#at + offset] ?? "";
  }

  #take(): string {
    return this.#characters[this.#at++] ?? "";
  }

  #eat(text: string): boolean {
    for (let i = 0; i < text.length; i++) if (this.#peek(i) !== text[i]) return false;
    this.#at += text.length;
    return true;
  }

  #alternatives(): Regex {
    if (++this.#depth > MAX_NESTING)
      throw new RegexError(`is nested more than ${MAX_NESTING} deep`);
    const options = [this.#sequence()];
    while (this.#eat("|")) options.push(this.#sequence());
    this.#depth--;
    return options.length === 1 ? options[0]! : { kind: "or", options };
  }

  #sequence(): Regex {
    const parts: Regex[] = [];
    while (this.#at < this.#characters.length && this.#peek() !== "|" && this.#peek() !== ")")
      parts.push(this.#quantified());
    if (parts.length === 0) return { kind: "empty" };
    return parts.length === 1 ? parts[0]! : { kind: "concat", parts };
  }

  #quantified(): Regex {
    const body = this.#atom();
    const counts = this.#quantifier();
    if (counts === null) return body;
    if (body.kind === "start" || body.kind === "end") throw new RegexError("repeats an anchor");
    this.#eat("?");
    return { kind: "repeat", body, min: counts[0], max: counts[1] };
  }

  #quantifier(): [number, number] | null {
    if (this.#eat("*")) return [0, Infinity];
    if (this.#eat("+")) return [1, Infinity];
    if (this.#eat("?")) return [0, 1];
    if (this.#peek() !== "{") return null;
    const end = this.#characters.indexOf("}", this.#at);
    const text = this.#characters.slice(this.#at, end + 1).join("");
    const match = /^\{(\d{1,6})(,(\d{0,6}))?\}$/u.exec(text);
    if (match === null) throw new RegexError("has a repetition that cannot be read");
    this.#at = end + 1;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === "" ? Infinity : Number(match[3]);
    if (max < min) throw new RegexError("has a repetition whose limits are in the wrong order");
    return [min, max];
  }

  #atom(): Regex {
    const character = this.#take();
    switch (character) {
      case "^":
        return { kind: "start" };
      case "$":
        return { kind: "end" };
      case ".":
        return set(lineEnds, true);
      case "(":
        return this.#group();
      case "[":
        return this.#class();
      case "\\":
        return this.#escape();
      case "*":
      case "+":
      case "?":
        throw new RegexError(`has "${character}" with nothing before it`);
      default:
        return single(character.codePointAt(0) ?? 0);
    }
  }

  #group(): Regex {
    if (this.#eat("?")) {
      if (this.#eat("=") || this.#eat("!")) throw new RegexError("looks ahead");
      if (this.#eat("<=") || this.#eat("<!")) throw new RegexError("looks behind");
      if (this.#eat("<")) {
        const end = this.#characters.indexOf(">", this.#at);
        if (end < 0) throw new RegexError("has a group whose name does not end");
        this.#at = end + 1;
      } else if (!this.#eat(":")) throw new RegexError("has a group of an unknown kind");
    }
    const inner = this.#alternatives();
    if (!this.#eat(")")) throw new RegexError("has a group that does not end");
    return inner;
  }

  #escape(): Regex {
    const character = this.#peek();
    if (/[1-9]/u.test(character)) throw new RegexError("refers back to a group");
    if (character === "k") throw new RegexError("refers back to a group");
    if (character === "b" || character === "B") throw new RegexError("asks for a word boundary");
    const item = this.#classEscape();
    return typeof item === "number" ? single(item) : item;
  }

  /** After the backslash: one code point, or a set. */
  #classEscape(): number | Extract<Regex, { kind: "set" }> {
    const character = this.#take();
    switch (character) {
      case "d":
      case "D":
        return set(digits, character === "D");
      case "w":
      case "W":
        return set(wordCharacters, character === "W");
      case "s":
      case "S":
        return set(blanks, character === "S");
      case "p":
      case "P":
        return this.#property(character === "P");
      case "x":
        return this.#hex(2);
      case "u":
        return this.#unicode();
      case "c":
        return (this.#take().codePointAt(0) ?? 0) % 32;
      case "":
        throw new RegexError("ends in a backslash");
      default:
        return controls[character] ?? character.codePointAt(0) ?? 0;
    }
  }

  #property(negated: boolean): Extract<Regex, { kind: "set" }> {
    const end = this.#characters.indexOf("}", this.#at);
    const text = this.#characters.slice(this.#at, end + 1).join("");
    if (!/^\{[A-Za-z_=]{1,60}\}$/u.test(text))
      throw new RegexError("names a Unicode property that cannot be read");
    this.#at = end + 1;
    const name = text.slice(1, -1).replace(/^(General_Category|gc)=/u, "");
    return { kind: "set", ranges: [], properties: [name], negated };
  }

  #hex(length: number): number {
    const text = this.#characters.slice(this.#at, this.#at + length).join("");
    if (text.length < length || !/^[0-9a-fA-F]+$/u.test(text))
      throw new RegexError("has an escape that cannot be read");
    this.#at += length;
    return Number.parseInt(text, 16);
  }

  #unicode(): number {
    if (this.#eat("{")) {
      const end = this.#characters.indexOf("}", this.#at);
      const value = this.#hex(Math.max(1, end - this.#at));
      this.#at += 1;
      if (value > LAST) throw new RegexError("names a character that does not exist");
      return value;
    }
    const high = this.#hex(4);
    if (high >= 0xd800 && high <= 0xdbff && this.#eat("\\u")) {
      const low = this.#hex(4);
      return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    return high;
  }

  #class(): Regex {
    const negated = this.#eat("^");
    const ranges: Range[] = [];
    const properties: string[] = [];
    while (this.#peek() !== "]") {
      if (this.#at >= this.#characters.length)
        throw new RegexError("has a class that does not end");
      const first = this.#classItem();
      if (typeof first !== "number") {
        if (first.negated && first.properties.length > 0)
          throw new RegexError("has a negated Unicode property inside of a class");
        ranges.push(...(first.negated ? invert(first.ranges) : first.ranges));
        properties.push(...first.properties);
      } else if (this.#peek() === "-" && this.#peek(1) !== "]") {
        this.#take();
        const last = this.#classItem();
        if (typeof last !== "number" || last < first)
          throw new RegexError("has a range that cannot be read");
        ranges.push([first, last]);
      } else ranges.push([first, first]);
    }
    this.#take();
    return { kind: "set", ranges: merge(ranges), properties, negated };
  }

  #classItem(): number | Extract<Regex, { kind: "set" }> {
    if (this.#eat("\\")) return this.#eat("b") ? 8 : this.#classEscape();
    return this.#take().codePointAt(0) ?? 0;
  }
}

function single(code: number): Regex {
  return set([[code, code]], false);
}

function set(ranges: readonly Range[], negated: boolean): Extract<Regex, { kind: "set" }> {
  return { kind: "set", ranges, properties: [], negated };
}

function merge(ranges: readonly Range[]): Range[] {
  const merged: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const previous = merged.at(-1);
    if (previous !== undefined && first <= previous[1] + 1)
      previous[1] = Math.max(previous[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

function invert(ranges: readonly Range[]): Range[] {
  const inverted: Range[] = [];
  let next = 0;
  for (const [first, last] of merge(ranges)) {
    if (first > next) inverted.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= LAST) inverted.push([next, LAST]);
  return inverted;
}
