/** JSON that models, tools and clients write: it may be none. */

import { randomUUID } from "node:crypto";
import { FermataError } from "./errors.ts";

/** Levels of lists and objects: far above what a schema may have, far below what the stack holds. */
export const maxDepth = 1000;

/** What may stand between the parts of a text: a regular expression, of JavaScript and of the mask engine. */
export const anyBlanks = "[ \\n\\r\\t]{0,16}";

/** @returns undefined where the text is no JSON, or has more than `maxDepth` levels */
export function parseJson(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    return text.length > 2 * maxDepth && isDeeper(value, maxDepth) ? undefined : value;
  } catch {
    return undefined;
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((entry) => isDeeper(entry, levels - 1));
}

/** @param value what JSON.parse made of a text @returns where it has an infinite number, as a JSON pointer; null: nowhere */
export function farNumber(value: unknown, pointer = ""): string | null {
  if (typeof value === "number" && !Number.isFinite(value)) return pointer;
  if (typeof value !== "object" || value === null) return null;
  for (const [key, entry] of Object.entries(value)) {
    const found = farNumber(entry, `${pointer}/${pointerStep(key)}`);
    if (found !== null) return found;
  }
  return null;
}

/** A key as it stands in a JSON pointer. */
export function pointerStep(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** The keys of a JSON pointer: "" has none. */
export function pointerKeys(pointer: string): string[] {
  const [, ...steps] = pointer.split("/");
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** What an object or a list has of its own under a key. */
export function ownEntry(parent: unknown, key: string): unknown {
  const has = typeof parent === "object" && parent !== null && Object.hasOwn(parent, key);
  return has ? (parent as JsonObject)[key] : undefined;
}

/** Before a number that is kept as a string for a while. Nobody knows it. */
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
export function exactJson(value: unknown): string {
  return exactText(JSON.stringify(value));
}

/** @param json what JSON.stringify made of a value with `NumberText` in it */
export function exactText(json: string): string {
  return json.replaceAll(markedNumbers, "$1");
}

export type JsonObject = { [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof NumberText);
}

/** No whole strings: the stack has no room for an expression that repeats over millions of characters. */
const quotesAndNumbers = /\\.|"|-?\d[\d.eE+-]*/gu;

/**
 * As `parseJson`, with what numbers of JavaScript's would lose.
 * @returns with `NumberText` in it, for such numbers only, or for those that `isKept` takes
 */
export function parseExactJson(text: string, isKept = isWrittenOtherwise): unknown {
  const value = parseJson(text);
  if (value === undefined || !/\d{16}|\d[.eE]|-0/u.test(text)) return value;
  let isInString = false;
  const marked = text.replaceAll(quotesAndNumbers, (part) => {
    if (part === '"') isInString = !isInString;
    const stays = isInString || part === '"' || !isKept(part);
    return stays ? part : JSON.stringify(mark + part);
  });
  return JSON.parse(marked, (_key, entry: unknown) => {
    const number = typeof entry === "string" ? markedNumber.exec(entry)?.[1] : undefined;
    return number === undefined ? entry : new NumberText(number);
  });
}

function isWrittenOtherwise(number: string): boolean {
  return String(Number(number)) !== number;
}

function isFarWhole(number: string): boolean {
  return /^-?\d+$/u.test(number) && !Number.isSafeInteger(Number(number));
}

/** As JSON.parse. Of whole numbers beyond 2^53, `asWritten` has all digits. */
export function parseWithDigits(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === "object" && value !== null && /\d{16}/u.test(text))
    written.set(value, parseExactJson(text, isFarWhole) as object);
  return value;
}

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/u;

/** @param text a word of JSON outside of strings @returns JSON for `unmark`; null: no number, or none that JavaScript changes */
export function markNumber(text: string): string | null {
  return String(Number(text)) === text || !number.test(text) ? null : `"${mark}${text}"`;
}

/** The lists and objects in which numbers of JavaScript's stand for others, with `NumberText` in their place. */
const written = new WeakMap<object, object>();

/** For `exactJson`, to write the numbers in `value` as they were written. */
export function asWritten(value: unknown): unknown {
  return (typeof value === "object" && value !== null && written.get(value)) || value;
}

/**
 * Puts numbers where `markNumber` put marks.
 * @param check gets each of them, which may be infinite
 * @throws FermataError invalid_json: a number is a name
 */
export function unmark(
  value: unknown,
  check: (number: number, path: readonly string[]) => void,
  path: string[] = [],
): void {
  if (typeof value !== "object" || value === null) return;
  const holder = value as { [key: string]: unknown };
  // Without a prototype: "__proto__" is a name like others.
  const texts = Object.create(null) as { [key: string]: unknown };
  for (const [key, entry] of Object.entries(holder)) {
    // A number stood where JSON has a name.
    if (key.startsWith(mark))
      throw new FermataError(
        "invalid_json",
        `The request body is not valid JSON: ${key.slice(mark.length)} is no name.`,
        { param: "body" },
      );
    path.push(key);
    if (typeof entry === "string" && entry.startsWith(mark)) {
      const text = entry.slice(mark.length);
      texts[key] = new NumberText(text);
      holder[key] = Number(text);
      check(Number(text), path);
    } else if (typeof entry === "object" && entry !== null) {
      unmark(entry, check, path);
      if (written.has(entry)) texts[key] = written.get(entry);
    }
    path.pop();
  }
  if (Object.keys(texts).length > 0)
    written.set(value, Object.assign(Array.isArray(value) ? [...value] : { ...value }, texts));
}
