/**
 * Regular expressions as a tree: what is regular, for masks; what is not (look-around, back-references, word
 * boundaries) is refused by name.
 *
 * regexpp, ESLint's parser, reads them. The tree is ours, as the mask engine needs what regexpp does not have: the
 * expression in Rust's syntax, its cost, and whether it matches, without backtracking.
 */

import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { beyondAscii, inBothCases, thirdForms } from "./cases.ts";
import { type JavaScriptRegex, asJavaScript, readingsOf } from "./dialect.ts";
import { narrowingRoom, withNarrowSets, withoutBoundaries } from "./narrow.ts";
import { type CharacterSet, type Range, invert, merge } from "./sets.ts";
import { type Look, type Regex, RegexError } from "./tree.ts";

export { type Look, type Regex, RegexError } from "./tree.ts";

/** Of what is read at all. */
const maxLength = 32_768;
/** Characters, ranges of characters and anchors. */
const maxParts = 2000;
const maxNesting = 100;
/** Positions in the expression once its counted repetitions are written out. */
const maxSize = 20_000;

/** Without the flag `u` a character beyond U+FFFF is two. */
const halfCharacter = /[\u{10000}-\u{10FFFF}]|\\u[dD][89a-fA-F]/u;
const lineEnds: Range[] = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const escapes: Record<AST.EscapeCharacterSet["kind"], Range[]> = {
  digit: [[48, 57]],
  word: [
    [48, 57],
    [65, 90],
    [95, 95],
    [97, 122],
  ],
  space: [
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
  ],
};

/**
 * As JavaScript reads it with the flag `u` or, where that refuses it, without: see `readingsOf`.
 * @throws RegexError with what is wrong or not regular, to follow "the pattern"
 */
export function parseRegex(source: string): Regex {
  const regex = parseWithLooks(source);
  const look = lookIn(regex);
  if (look !== null) throw new RegexError(look.ahead ? "looks ahead" : "looks behind");
  return regex;
}

/**
 * @param isNegated its complement is wanted: where it cannot be exact it matches more, else less
 * @throws as `parseRegex`, but for what looks around
 */
export function parseWithLooks(source: string, isNegated = false): Regex {
  if (source.length > maxLength) throw new RegexError(`is longer than ${maxLength} characters`);
  const written = asJavaScript(source);
  const regex = new TreeBuilder(written, isNegated).pattern(read(written.source));
  if (partsIn(regex) > maxParts) throw new RegexError(`has more than ${maxParts} characters`);
  if (sizeOf(regex) > maxSize) throw new RegexError(`repeats more than ${maxSize} positions`);
  return regex;
}

/** The first one. */
export function lookIn(regex: Regex): Look | null {
  switch (regex.kind) {
    case "look":
      return regex;
    case "concat":
      return firstLook(regex.parts);
    case "or":
      return firstLook(regex.options);
    case "repeat":
      return lookIn(regex.body);
    default:
      return null;
  }
}

function firstLook(parts: readonly Regex[]): Look | null {
  for (const part of parts) {
    const look = lookIn(part);
    if (look !== null) return look;
  }
  return null;
}

function partsIn(regex: Regex): number {
  switch (regex.kind) {
    case "concat":
      return regex.parts.reduce((sum, part) => sum + partsIn(part), 0);
    case "or":
      return regex.options.reduce((sum, option) => sum + partsIn(option), 0);
    case "repeat":
    case "look":
      return partsIn(regex.body);
    case "set":
      return Math.max(1, regex.ranges.length);
    default:
      return 1;
  }
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
    case "look":
      return 1 + sizeOf(regex.body);
    default:
      return 1;
  }
}

function read(source: string): AST.Pattern {
  const parser = new RegExpParser();
  let problem = "";
  for (const { source: text, unicode } of readingsOf(source)) {
    if (!unicode && halfCharacter.test(text))
      throw new RegexError("contains half of a character (a lone surrogate)");
    try {
      return parser.parsePattern(text, 0, text.length, { unicode });
    } catch (error) {
      // The parser calls itself for each group.
      if (error instanceof RangeError) throw tooDeep();
      problem = (error as Error).message.split(": ").at(-1) ?? "";
    }
  }
  throw new RegexError(`is not a regular expression: ${problem}`);
}

function tooDeep(): RegexError {
  return new RegexError(`is nested more than ${maxNesting} deep`);
}

/** The parser's tree to ours. */
class TreeBuilder {
  readonly #dialect: JavaScriptRegex;
  readonly #room = { left: narrowingRoom };
  readonly #boundaries = new Set<Regex>();
  #isNegated: boolean;

  constructor(dialect: JavaScriptRegex, isNegated: boolean) {
    this.#dialect = dialect;
    this.#isNegated = isNegated;
  }

  pattern({ alternatives }: AST.Pattern): Regex {
    return this.#alternatives(alternatives, 1, { before: "any text", behind: "any text" });
  }

  #alternatives(
    alternatives: readonly AST.Alternative[],
    depth: number,
    around: Around = {},
  ): Regex {
    if (depth > maxNesting) throw tooDeep();
    const options = alternatives.map(({ elements }) => this.#row(elements, depth, around));
    return options.length === 1 ? options[0]! : { kind: "or", options };
  }

  #row(elements: readonly AST.Element[], depth: number, around: Around): Regex {
    let isAtStart = around.before === "nothing";
    const all = elements.map((element) => {
      const part = this.#element(element, depth, isAtStart);
      isAtStart = part.kind === "start" || (isAtStart && part.kind === "look");
      return part;
    });
    const isBoundary = (part: Regex): boolean => this.#boundaries.has(part);
    const whole = withoutBoundaries(withAround(all, around), isBoundary, this.#room);
    if (around.before === "nothing" && whole?.[0]?.kind === "start") whole.shift();
    const parts = withFirstItemApart(whole ?? withNarrowSets(all, this.#room));
    if (parts.length === 0) return { kind: "empty" };
    return parts.length === 1 ? parts[0]! : { kind: "concat", parts };
  }

  #element(element: AST.Element, depth: number, isAtStart = false): Regex {
    switch (element.type) {
      case "Character":
        return this.#class([element], false);
      case "CharacterSet":
        if (element.kind === "any")
          return { ...this.#class([], true), ranges: this.#dialect.dotsLines ? [] : lineEnds };
        return this.#class([element], false);
      case "CharacterClass":
        return this.#class(element.elements, element.negate);
      case "Group":
        if (element.modifiers !== null) throw new RegexError("has a group of an unknown kind");
        return this.#alternatives(element.alternatives, depth + 1);
      case "CapturingGroup":
        return this.#alternatives(element.alternatives, depth + 1);
      case "Quantifier": {
        const { min, max } = element;
        const body = this.#element(element.element, depth);
        return max === 0 ? { kind: "empty" } : { kind: "repeat", body, min, max };
      }
      case "Backreference":
        throw new RegexError("refers back to a group");
      case "Assertion":
        if (element.kind === "start" || element.kind === "end") return { kind: element.kind };
        if (element.kind === "word") return this.#wordBoundary(element.negate);
        return this.#look(element as AST.LookaroundAssertion, depth, isAtStart);
      case "ExpressionCharacterClass":
        throw new RegexError("has a class of an unknown kind");
    }
  }

  #look(
    { kind, negate, alternatives }: AST.LookaroundAssertion,
    depth: number,
    isAtStart: boolean,
  ): Look {
    const isNegated = this.#isNegated;
    this.#isNegated = isNegated !== negate;
    const ahead = kind === "lookahead";
    const around: Around = ahead
      ? { before: isAtStart ? "nothing" : undefined, behind: "any text" }
      : { before: "any text" };
    const body = this.#alternatives(alternatives, depth + 1, around);
    this.#isNegated = isNegated;
    return { kind: "look", ahead, negated: negate, body };
  }

  /** Only one of the characters beside it is of a word; negated: both are, or none. */
  #wordBoundary(negated: boolean): Regex {
    if (this.#dialect.ignoresCase) throw beyondAscii();
    const body = this.#setOf(escapes.word);
    const side = (ahead: boolean, isOther: boolean): Look => ({
      kind: "look",
      ahead,
      negated: isOther,
      body,
    });
    const options = [false, true].map((before): Regex => ({
      kind: "concat",
      parts: [side(false, before), side(true, before === negated)],
    }));
    const boundary: Regex = { kind: "or", options };
    this.#boundaries.add(boundary);
    return boundary;
  }

  #setOf(ranges: readonly Range[]): CharacterSet {
    return { kind: "set", ranges, properties: [], negated: false };
  }

  /** Of one element, its own negation is the set's. */
  #class(
    elements: readonly (AST.CharacterClassElement | AST.CharacterSet)[],
    negated: boolean,
  ): CharacterSet {
    const [only] = elements;
    if (elements.length === 1 && only?.type === "CharacterSet" && only.kind !== "any") {
      if (only.kind === "property" && this.#dialect.ignoresCase) throw beyondAscii();
      const isNegated = negated !== only.negate;
      const ranges = only.kind === "property" ? [] : this.#escaped(only.kind, isNegated);
      const properties = only.kind === "property" ? [nameOf(only)] : [];
      return { kind: "set", ranges, properties, negated: isNegated };
    }
    const ranges: Range[] = [];
    const properties: string[] = [];
    for (const element of elements) {
      if (element.type === "Character")
        ranges.push(...this.#cased([element.value, element.value], negated));
      else if (element.type === "CharacterClassRange")
        ranges.push(...this.#cased([element.min.value, element.max.value], negated));
      else if (element.type !== "CharacterSet" || element.kind === "any")
        throw new RegexError("has a class of an unknown kind");
      else if (element.kind !== "property") ranges.push(...this.#escapedInClass(element, negated));
      else if (element.negate)
        throw new RegexError("has a negated Unicode property inside of a class");
      else properties.push(nameOf(element));
    }
    if (properties.length > 0 && this.#dialect.ignoresCase) throw beyondAscii();
    return { kind: "set", ranges: merge(ranges), properties, negated };
  }

  #escapedInClass({ kind, negate }: AST.EscapeCharacterSet, negated: boolean): Range[] {
    const ranges = this.#escaped(kind, negated !== negate);
    return negate ? invert(ranges) : ranges;
  }

  /** With the flag `u` the third forms are of words, too, where case is ignored. */
  #escaped(kind: AST.EscapeCharacterSet["kind"], negated: boolean): Range[] {
    const isWide = kind === "word" && this.#dialect.ignoresCase && negated !== this.#isNegated;
    return isWide
      ? merge([...escapes.word, ...thirdForms.map(({ range }) => range)])
      : escapes[kind];
  }

  #cased(range: Range, negated: boolean): Range[] {
    if (!this.#dialect.ignoresCase) return [range];
    return inBothCases(range, negated !== this.#isNegated);
  }
}

/** What stands around a row; undefined: it is not known here. */
interface Around {
  before?: "any text" | "nothing" | undefined;
  behind?: "any text" | undefined;
}

function withAround(parts: readonly Regex[], { before, behind }: Around): Regex[] {
  const body: Regex = { kind: "set", ranges: [], properties: [], negated: true };
  const any: Regex = { kind: "repeat", body, min: 0, max: Infinity };
  const row = [...parts];
  if (before !== undefined && parts[0]?.kind !== "start")
    row.unshift({ kind: "start" }, ...(before === "nothing" ? [] : [any]));
  if (behind !== undefined && parts.at(-1)?.kind !== "end") row.push(any, { kind: "end" });
  return row;
}

/**
 * Lists as `(?:item,)*item` in the form `item(?:,item)*`, which matches the same. The mask engine looks how a text could
 * end, and of the first form it follows the items for as long as the text may be: beside a `maxLength` it gave up.
 * @param parts in a row
 */
function withFirstItemApart(parts: readonly Regex[]): Regex[] {
  const row = [...parts];
  for (let at = 0; at + 1 < row.length; at++) {
    const list = row[at]!;
    if (list.kind !== "repeat" || list.body.kind !== "concat" || hasAnchor(list.body)) continue;
    const { parts: body } = list.body;
    let shared = 0;
    while (shared < body.length - 1 && areEqual(body[shared]!, row[at + 1 + shared])) shared += 1;
    if (shared === 0) continue;
    const item = body.slice(0, shared);
    const turned: Regex = { kind: "concat", parts: [...body.slice(shared), ...item] };
    row.splice(at, shared + 1, ...item, { ...list, body: turned });
    at += shared;
  }
  return row;
}

function areEqual(a: Regex, b: Regex | undefined): boolean {
  return a.kind === b?.kind && JSON.stringify(a) === JSON.stringify(b);
}

function hasAnchor(regex: Regex): boolean {
  switch (regex.kind) {
    case "start":
    case "end":
      return true;
    case "concat":
      return regex.parts.some(hasAnchor);
    case "or":
      return regex.options.some(hasAnchor);
    case "repeat":
      return hasAnchor(regex.body);
    default:
      return false;
  }
}

function nameOf({ key, value }: AST.UnicodePropertyCharacterSet): string {
  if (value === null) return key;
  return key === "General_Category" || key === "gc" ? value : `${key}=${value}`;
}
