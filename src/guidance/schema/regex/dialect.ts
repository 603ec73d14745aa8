/**
 * What Python, Rust and others write and JavaScript does not read: named groups as `(?P<name>…)`, flags at the beginning,
 * `\A`, `\Z` and `\z`, `\x{e9}`, `{,3}`, and backslashes before characters that need none.
 */

export interface JavaScriptRegex {
  source: string;
  ignoresCase: boolean;
  /** The dot matches ends of lines too. */
  dotsLines: boolean;
}

const flagsFirst = /^(\^?)\(\?([isu]+)\)/u;
/** Escaped characters and classes are passed over, one without an end whole: its start is not looked for in it again. */
const foreign =
  /\\[AZz]|\\x\{(?=[\da-fA-F]{1,6}\})|(\\.|\[(?:\\.|[^\]\\])*(?:\]|\\?$))|\(\?P<|\{,(?=\d+\})/gsu;
const own: Readonly<Record<string, string>> = {
  "\\A": "^",
  "\\Z": "$",
  "\\z": "$",
  "\\x{": "\\u{",
  "(?P<": "(?<",
  "{,": "{0,",
};

export function asJavaScript(source: string): JavaScriptRegex {
  const [whole = "", anchor = "", flags = ""] = flagsFirst.exec(source) ?? [];
  const rest = source
    .slice(whole.length)
    .replaceAll(foreign, (text, passed?: string) => passed ?? own[text]!);
  return {
    source: anchor + rest,
    ignoresCase: flags.includes("i"),
    dotsLines: flags.includes("s"),
  };
}

export interface Reading {
  source: string;
  /** With the flag `u`. */
  unicode: boolean;
}

/**
 * Ways to read an expression; the first that JavaScript takes counts. Without the flag `u` it takes nearly everything, and
 * letters for what means more in any language.
 * @param source as `asJavaScript` gives it
 */
export function readingsOf(source: string): Reading[] {
  const readings = [{ source, unicode: true }];
  const plain = withoutNeedlessEscapes(source);
  if (plain !== source) readings.push({ source: plain, unicode: true });
  if (!hasUnknown(source)) readings.push({ source, unicode: false });
  return readings;
}

/** The flag `u` refuses a backslash before them, as they mean themselves. In a class it takes one before `-`. */
const needless = /\\(?:([ !"#%&',:;<=>@_`~-])|.)/gsu;

function withoutNeedlessEscapes(source: string): string {
  return source.replaceAll(needless, (escape, character?: string) =>
    character === undefined ? escape : `\\x${character.charCodeAt(0).toString(16)}`,
  );
}

/** Escapes that JavaScript knows without the flag `u`; any other letter, and a class of POSIX's. */
const escapes = /\\(?:[bBcdDfknrsStvwW]|[ux](?!\{)|[^a-zA-Z])|(\\[a-zA-Z]|\[:\^?[a-z]+:\])/gu;

function hasUnknown(source: string): boolean {
  return [...source.matchAll(escapes)].some(([, unknown]) => unknown !== undefined);
}
