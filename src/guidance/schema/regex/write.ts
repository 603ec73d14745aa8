/** A regular expression in the mask engine's syntax (Rust's), matching whole strings. */

import { type Regex, RegexError, parseRegex } from "./parse.ts";

const ANYTHING = "[\\s\\S]*";

/**
 * JSON Schema's patterns search: they match somewhere unless anchored. The result matches the whole
 * string, without anchors. @throws RegexError for anchors in the middle
 */
export function writeWhole(regex: Regex): string {
  return write(regex, { left: ANYTHING, right: ANYTHING });
}

/** The expression itself, which must have no anchors but at its borders, where they say nothing. */
export function writeExact(regex: Regex): string {
  return write(regex, { left: "", right: "" });
}

/** Reads what was written here, of whole texts: it has no backslash before another one. @throws as `parseRegex` */
export function readWhole(written: string): Regex {
  return parseRegex(`^(?:${written.replaceAll("\\x{", "\\u{")})$`);
}

/** What stands on a border where no anchor does; null inside, where an anchor has no place. */
interface Borders {
  left: string | null;
  right: string | null;
}

function write(regex: Regex, { left, right }: Borders): string {
  switch (regex.kind) {
    case "or":
      return `(?:${regex.options.map((option) => write(option, { left, right })).join("|")})`;
    case "concat":
      return writeParts(regex.parts, { left, right });
    case "start":
    case "end":
      return writeParts([regex], { left, right });
    default:
      return (left ?? "") + writeInner(regex) + (right ?? "");
  }
}

function writeParts(parts: readonly Regex[], borders: Borders): string {
  let { left, right } = borders;
  let first = 0;
  let last = parts.length;
  while (first < last && parts[first]!.kind === "start") {
    if (left === null) throw middle();
    first += 1;
    left = "";
  }
  while (last > first && parts[last - 1]!.kind === "end") {
    if (right === null) throw middle();
    last -= 1;
    right = "";
  }
  const inner = parts.slice(first, last);
  // `^` and `$` inside of a group at a border belong to the border.
  return inner.length === 0
    ? emptyBetween(left, right)
    : inner
        .map((part, index) =>
          write(part, {
            left: index === 0 ? left : null,
            right: index === inner.length - 1 ? right : null,
          }),
        )
        .join("");
}

function emptyBetween(left: string | null, right: string | null): string {
  return left === ANYTHING && right === ANYTHING ? ANYTHING : (left ?? "") + (right ?? "");
}

function middle(): RegexError {
  return new RegexError("has an anchor in its middle");
}

function writeInner(regex: Regex): string {
  switch (regex.kind) {
    case "empty":
      return "";
    case "set":
      return writeSet(regex);
    case "repeat": {
      const body = write(regex.body, { left: null, right: null });
      if (regex.max === 0) return "";
      return `(?:${body})${writeCounts(regex.min, regex.max)}`;
    }
    default:
      return write(regex, { left: null, right: null });
  }
}

function writeCounts(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  return min === 0 && max === 1 ? "?" : `{${min},${max}}`;
}

function writeSet({ ranges, properties, negated }: Extract<Regex, { kind: "set" }>): string {
  if (ranges.length === 0 && properties.length === 0) return negated ? "[\\s\\S]" : "[^\\s\\S]";
  const first = ranges[0];
  if (!negated && properties.length === 0 && ranges.length === 1 && first?.[0] === first?.[1])
    return writeCharacter(first![0]);
  const items = ranges.map(([a, b]) =>
    a === b ? writeCharacter(a) : `${writeCharacter(a)}-${writeCharacter(b)}`,
  );
  items.push(...properties.map((name) => `\\p{${name}}`));
  return `[${negated ? "^" : ""}${items.join("")}]`;
}

/** Letters and digits as they are, all else by number: nothing to escape, in a class or out of it. */
function writeCharacter(code: number): string {
  const isPlain =
    (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
  return isPlain ? String.fromCharCode(code) : `\\x{${code.toString(16)}}`;
}

/** Matches exactly this text. */
function writeLiteral(text: string): string {
  return Array.from(text, (character) => writeCharacter(character.codePointAt(0) ?? 0)).join("");
}

/** Texts by their beginnings. */
export interface Trie {
  isEnd: boolean;
  next: Map<string, Trie>;
}

export function trieOf(texts: readonly string[]): Trie {
  const root: Trie = { isEnd: false, next: new Map() };
  for (const text of texts) {
    let node = root;
    for (const character of text) {
      const next = node.next.get(character) ?? { isEnd: false, next: new Map<string, Trie>() };
      node.next.set(character, next);
      node = next;
    }
    node.isEnd = true;
  }
  return root;
}

/** Matches each of these texts: a tree of their beginnings compiles in less time than a list. */
export function writeOneOf(texts: readonly string[]): string {
  return writeBranches(trieOf(texts));
}

function writeBranches(node: Trie): string {
  const options = [...node.next].map(([first, next]) => writeLiteral(first) + writeBranches(next));
  if (options.length === 0) return "";
  if (options.length === 1 && !node.isEnd) return options[0]!;
  return `(?:${options.join("|")})${node.isEnd ? "?" : ""}`;
}

/** Matches every text but these. */
export function writeAllBut(texts: readonly string[]): string {
  return writeOthers(trieOf(texts));
}

/** So many letters in a row are written side by side: the mask engine refuses what is nested a hundred deep. */
const besideEachOther = 64;

function writeOthers(node: Trie): string {
  const options = node.next.size === 1 ? othersOfRow(node) : othersOfFork(node);
  const written = `(?:${options.join("|")})`;
  return node.isEnd ? written : `${written}?`;
}

function othersOfFork({ next }: Trie): string[] {
  const options = [...next].map(([first, then]) => writeLiteral(first) + writeOthers(then));
  const known = [...next.keys()].map(writeLiteral).join("");
  return [...options, known === "" ? "[\\s\\S]+" : `[^${known}][\\s\\S]*`];
}

/** What leaves a row of single letters at each of them, and what goes on behind it. */
function othersOfRow(node: Trie): string[] {
  const options: string[] = [];
  let row = "";
  let at = node;
  do {
    const [letter, next] = [...at.next][0]!;
    const other = `[^${writeLiteral(letter)}][\\s\\S]*`;
    options.push(row === "" ? other : `${row}(?:${other})?`);
    row += writeLiteral(letter);
    at = next;
  } while (at.next.size === 1 && !at.isEnd && options.length < besideEachOther);
  return [...options, row + writeOthers(at)];
}
