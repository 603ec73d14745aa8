/**
 * A template's source as the library reads it. Blanks and ends of lines around tags go here (`trim_blocks`,
 * `lstrip_blocks`): the library drops them within texts and strings, too, and knows neither `raw` nor `+`.
 */

/** The library's reading takes the square of such a run. The longest in llama.cpp's templates has 45. */
const maxBlanks = 500;

/** The library's own whitespace control is left to it. */
export function prepare(template: string): string {
  const source = template.replaceAll(/\r\n?/gu, "\n");
  refuseBlanks(source);
  const openings = /\{[{%#]/gu;
  let written = "";
  for (let at = 0; ; openings.lastIndex = at) {
    const open = openings.exec(source)?.index;
    const tag = open === undefined ? null : readTag(source, open);
    // The library says what is wrong with a tag that does not end.
    if (open === undefined || tag === null) return written + source.slice(at);
    const text = source.slice(at, open);
    const keepsMargin = source.charAt(open + 1) === "{" || source.charAt(open + 2) === "+";
    written += (keepsMargin ? text : withoutMargin(text, at, source)) + tag.text;
    at = tag.end;
  }
}

/** In its strings and comments too: the library looks for tags there. */
function refuseBlanks(source: string): void {
  let run = 0;
  for (let at = 0; at < source.length; at++) {
    run = source.charAt(at).trim() === "" ? run + 1 : 0;
    if (run > maxBlanks)
      throw new SyntaxError(`more than ${maxBlanks} blanks follow each other at ${at - run + 1}`);
  }
}

interface Tag {
  /** As it is written for the library. */
  text: string;
  /** Behind it, and behind the end of its line where that goes with it. */
  end: number;
}

/** Blanks between the beginning of a line and a tag. */
function withoutMargin(text: string, at: number, source: string): string {
  const line = text.lastIndexOf("\n") + 1;
  const beginsLine = line > 0 || at === 0 || source.charAt(at - 1) === "\n";
  return beginsLine && text.slice(line).trim() === "" ? text.slice(0, line) : text;
}

/** @returns null: it does not end */
function readTag(source: string, open: number): Tag | null {
  const kind = source.charAt(open + 1);
  const found = kind === "#" ? readComment(source, open) : readCode(source, open, kind);
  if (found === null) return null;
  if (/^\{%[-+]?\s*raw\s*-?%\}$/u.test(found.text)) return readRaw(source, found);
  const signless = found.text.replace(/^(..)\+/u, "$1");
  const keepsEnd = kind === "{" || /[-+].\}$/u.test(signless);
  return {
    text: signless.replace(/\+([%#]\})$/u, "$1"),
    end: found.end + (!keepsEnd && source.charAt(found.end) === "\n" ? 1 : 0),
  };
}

function readComment(source: string, open: number): Tag | null {
  const close = source.indexOf("#}", open + 2);
  return close < 0 ? null : { text: source.slice(open, close + 2), end: close + 2 };
}

function readCode(source: string, open: number, kind: string): Tag | null {
  const close = kind === "%" ? "%}" : "}}";
  let text = source.slice(open, open + 2);
  let quote = "";
  let depth = 0;
  for (let at = open + 2; at < source.length; at++) {
    const character = source.charAt(at);
    if (quote === "" && depth === 0 && source.startsWith(close, at))
      return { text: text + close, end: at + 2 };
    text += character;
    if (quote !== "") {
      if (character === "\\") text += escaped(source.charAt((at += 1)));
      else if (character === quote) quote = "";
    } else if (character === "'" || character === '"') quote = character;
    else if (character === "{") depth += 1;
    else if (character === "}") depth -= 1;
  }
  return null;
}

/** Behind a backslash: one that begins no escape of Python's stands for itself. */
function escaped(letter: string): string {
  return /[\n\\'"abfnrtvxuUN0-7]/u.test(letter) ? letter : `\\${letter}`;
}

/** The text to `endraw`, as a string. @returns null: it does not end */
function readRaw(source: string, { text: begin, end: start }: Tag): Tag | null {
  const rest = source.slice(start);
  const found = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/u.exec(rest);
  if (found === null) return null;
  const [{ length }, before, after] = found as unknown as [string, string, string];
  let text = rest.slice(0, found.index);
  if (begin.endsWith("-%}")) text = text.trimStart();
  if (before === "-") text = text.trimEnd();
  else if (before === "") text = withoutMargin(text, start, source);
  const end = start + found.index + length;
  return {
    text: `{{${begin.startsWith("{%-") ? "-" : ""} ${JSON.stringify(text)} ${after === "-" ? "-" : ""}}}`,
    end: after === "" && source.charAt(end) === "\n" ? end + 1 : end,
  };
}
