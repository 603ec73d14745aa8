/** JSON that models, tools and clients write: it may be none. */

import { randomUUID } from "node:crypto";

/** @returns undefined where the text is no JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Before a number that is kept as a string for a while. Nobody can write it. */
const mark = randomUUID();
const numberText = "(-?\\d[\\d.eE+-]*)";
const markedNumber = new RegExp(`^${mark}${numberText}$`, "u");
const markedNumbers = new RegExp(`"${mark}${numberText}"`, "gu");

/** A number as its JSON text has it, where a number of JavaScript's is written otherwise: `1.0`, or with many digits. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** For `exactJson`. */
  toJSON(): string {
    return mark + this.text;
  }
}

/** As JSON.stringify, with each `NumberText` as it is written. */
export function exactJson(value: object): string {
  return JSON.stringify(value).replaceAll(markedNumbers, "$1");
}

export function isJsonObject(value: unknown): value is { [key: string]: unknown } {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof NumberText);
}

const stringsAndNumbers = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gu;

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
