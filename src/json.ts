/** JSON that models, tools and clients write: it may be none. */

/** @returns undefined where the text is no JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A number as its JSON text has it, where a number of JavaScript's is written otherwise: `1.0`, or with many digits. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function isJsonObject(value: unknown): value is { [key: string]: unknown } {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof NumberText);
}

const stringsAndNumbers = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gu;
/** Before a number that is kept as a string for a while. */
const mark = "\0number ";
const markedNumber = new RegExp(`^${mark}(-?\\d[\\d.eE+-]*)$`, "u");

/** As `parseJson`, with what numbers of JavaScript's would lose. @returns with `NumberText` in it, for such numbers only */
export function parseExactJson(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined || !/\d{16}|\d[.eE]|-0/u.test(text)) return value;
  const marked = text.replaceAll(stringsAndNumbers, (part) =>
    part.startsWith('"') || String(Number(part)) === part ? part : JSON.stringify(mark + part),
  );
  return JSON.parse(marked, (_key, entry: unknown) => {
    const number = typeof entry === "string" ? markedNumber.exec(entry)?.[1] : undefined;
    return number === undefined ? entry : new NumberText(number);
  });
}
