/** What Python and Rust write and JavaScript does not read: named groups as `(?P<name>…)`, flags at the beginning. */

export interface JavaScriptRegex {
  source: string;
  ignoresCase: boolean;
  /** The dot matches ends of lines too. */
  dotsLines: boolean;
}

const flagsFirst = /^(\^?)\(\?([isu]+)\)/u;
/** Escaped characters and classes are passed over, one without an end whole: its start is not looked for in it again. */
const namedGroup = /(\\.|\[(?:\\.|[^\]\\])*(?:\]|\\?$))|\(\?P</gsu;

export function asJavaScript(source: string): JavaScriptRegex {
  const [whole = "", anchor = "", flags = ""] = flagsFirst.exec(source) ?? [];
  return {
    source:
      anchor + source.slice(whole.length).replaceAll(namedGroup, (_, passed) => passed ?? "(?<"),
    ignoresCase: flags.includes("i"),
    dotsLines: flags.includes("s"),
  };
}
