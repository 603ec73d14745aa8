/** What the library's parser does not read, or reads otherwise, in tokens that it reads. */

import type { Token } from "./library.ts";

const closes: Readonly<Record<string, string>> = {
  OpenParen: "CloseParen",
  OpenSquareBracket: "CloseSquareBracket",
  OpenCurlyBracket: "CloseCurlyBracket",
};
const closing: ReadonlySet<string> = new Set(Object.values(closes));

/** Of each opening bracket, where its closing one stands. */
export function bracketEnds(tokens: readonly Token[]): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (const [at, { type }] of tokens.entries()) {
    if (type in closes) open.push(at);
    const from = closing.has(type) ? open.pop() : undefined;
    if (from !== undefined) ends.set(from, at);
  }
  return ends;
}

const words: ReadonlySet<string> = new Set("and else elif if in is not or".split(" "));

function isValueEnd({ type, value }: Token): boolean {
  return (
    closing.has(type) || type === "StringLiteral" || (type === "Identifier" && !words.has(value))
  );
}

/** Tuples that end with a comma, or have no items, become lists, as all tuples do. */
export function withTuples(tokens: readonly Token[]): Token[] {
  const written = [...tokens];
  for (const [open, close] of bracketEnds(tokens)) {
    const before = tokens[open - 1];
    const isCall = before !== undefined && isValueEnd(before);
    const endsEarly = close === open + 1 || tokens[close - 1]?.type === "Comma";
    if (tokens[open]?.type !== "OpenParen" || isCall || !endsEarly) continue;
    written[open] = { type: "OpenSquareBracket", value: "[" };
    written[close] = { type: "CloseSquareBracket", value: "]" };
  }
  return written;
}

const between: ReadonlySet<string> = new Set([
  "Comma",
  "Colon",
  "Equals",
  "OpenStatement",
  "OpenExpression",
]);

/** `a < b < c` is `a < b and b < c`: marks the operators behind a comparison that is not in brackets. */
export function withChains(tokens: readonly Token[]): Token[] {
  /** Of each bracket that is open: whether a comparison was written since the last word or comma. */
  const compared = [false];
  return tokens.map((token) => {
    const { type, value } = token;
    const last = compared.length - 1;
    if (type in closes) compared.push(false);
    else if (closing.has(type) && last > 0) compared.pop();
    else if (between.has(type) || (type === "Identifier" && words.has(value)))
      compared[last] = false;
    else if (type === "ComparisonBinaryOperator") {
      const isChained = compared[last] === true;
      compared[last] = true;
      return { ...token, isChained };
    }
    return token;
  });
}

/** As which `with` is called with its values. No template can write such a name. */
export const scopeMark = "with values";

/** `{% with … %}` becomes an `{% if … %}`, which has a block too. */
export function withBlocks(tokens: readonly Token[]): Token[] {
  const written: Token[] = [];
  let isOpen = false;
  for (const [at, token] of tokens.entries()) {
    const isName = token.type === "Identifier" && tokens[at - 1]?.type === "OpenStatement";
    if (isName && token.value === "with") {
      isOpen = true;
      for (const value of ["if", scopeMark]) written.push({ type: "Identifier", value });
      written.push({ type: "OpenParen", value: "(" });
    } else if (isName && token.value === "endwith") written.push({ ...token, value: "endif" });
    else {
      if (isOpen && token.type === "CloseStatement")
        written.push({ type: "CloseParen", value: ")" });
      isOpen &&= token.type !== "CloseStatement";
      written.push(token);
    }
  }
  return written;
}

const wholeNumber = /^([-+]?)(0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|\d+(?:_\d+)*)$/iu;
const floatNumber = /^[-+]?\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?(?:e[-+]?\d+(?:_\d+)*)?$/iu;
const partsOfNumbers: ReadonlySet<string> = new Set([
  "AdditiveBinaryOperator",
  "Dot",
  "Identifier",
  "NumericLiteral",
]);
/** `1_0.5_0e-1_0`, an underscore and what follows it being a name. */
const mostParts = 8;

/** Python's numbers: the library reads digits and a dot, and takes what follows (`1e5`, `0x1f`, `1_000`) for names. */
export function withNumbers(tokens: readonly Token[]): Token[] {
  const written: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    const number = tokens[at - 1]?.type === "Dot" ? null : numberAt(tokens, at);
    written.push(number === null ? token : { ...token, value: number.value });
    if (number !== null) at = number.last;
  }
  return written;
}

/** The longest one of several tokens. Null: there is none. */
function numberAt(tokens: readonly Token[], at: number): { value: string; last: number } | null {
  let text = tokens[at]!.value;
  let found: { value: string; last: number } | null = null;
  if (tokens[at]!.type !== "NumericLiteral") return found;
  for (let last = at + 1; last < at + mostParts; last++) {
    const part = tokens[last];
    if (part === undefined || !partsOfNumbers.has(part.type)) break;
    text += part.value;
    const value = numberIn(text);
    if (value !== null) found = { value, last };
  }
  return found;
}

/** As the library reads it: a float is what has a dot. */
function numberIn(text: string): string | null {
  const [, sign, digits] = wholeNumber.exec(text) ?? [];
  if (digits !== undefined) return `${sign}${Number(digits.replaceAll("_", ""))}`;
  if (!floatNumber.test(text)) return null;
  const float = text.replaceAll("_", "");
  return float.includes(".") ? float : float.replace(/e/iu, ".e");
}
