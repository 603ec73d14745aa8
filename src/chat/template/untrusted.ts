/**
 * Text from users, tools and files is data: it never becomes a special token. A guard character is
 * put into it wherever a special token's spelling could be recognized; the tokenizer recognizes no
 * spelling with a guard in it and drops the guards, so the text's own tokens do not change.
 */

import { NumberText } from "../../json.ts";

const PRIVATE_USE_FIRST = 0xe000;
const PRIVATE_USE_LAST = 0xf8ff;
const privateUse = /[\ue000-\uf8ff]/;

/** Characters that occur in no input and not in the template. */
export interface Marks {
  /** Removed by the tokenizer; breaks the spelling it stands in. */
  guard: string;
  /** Stand for an assistant's content and reasoning while a template is probed. */
  content: string;
  reasoning: string;
}

/** How `tojson(ensure_ascii=true)` writes a mark. */
export function escapedMark(mark: string): string {
  return `\\u${mark.charCodeAt(0).toString(16)}`;
}

/** The same inputs give the same marks: renderings of one conversation stay comparable. */
export function chooseMarks(inputs: readonly string[]): Marks | null {
  const [guard, content, reasoning] = unusedCharacters(inputs);
  if (guard === undefined || content === undefined || reasoning === undefined) return null;
  return { guard, content, reasoning };
}

/**
 * Private-use characters that no input has, neither as they are nor escaped: from the first or the last on. One
 * pass over each input.
 */
export function* unusedCharacters(
  inputs: readonly string[],
  lastFirst = false,
): Generator<string, void, void> {
  const count = PRIVATE_USE_LAST - PRIVATE_USE_FIRST + 1;
  const isUsed = new Uint8Array(count);
  const note = (code: number): void => {
    if (code >= PRIVATE_USE_FIRST && code <= PRIVATE_USE_LAST) isUsed[code - PRIVATE_USE_FIRST] = 1;
  };
  for (const text of inputs) {
    if (privateUse.test(text)) for (let at = 0; at < text.length; at++) note(text.charCodeAt(at));
    for (let at = text.indexOf("\\u"); at >= 0; at = text.indexOf("\\u", at + 2))
      note(Number.parseInt(text.slice(at + 2, at + 6), 16));
  }
  for (let step = 0; step < count; step++) {
    const index = lastFirst ? count - 1 - step : step;
    if (isUsed[index] === 0) yield String.fromCharCode(PRIVATE_USE_FIRST + index);
  }
}

/** Knows the vocabulary's spellings; guards strings. */
export class Guard {
  readonly #after: RegExp | null;
  readonly #before: RegExp | null;

  constructor(spellings: Iterable<string>) {
    const after = new Set<string>();
    const before = new Set<string>();
    for (const spelling of spellings) {
      const visible = spelling.replace(/^[\s▁]+/u, "");
      // Runs of blanks are text like any other: nothing is controlled by them.
      if (visible === "") continue;
      const first = String.fromCodePoint(visible.codePointAt(0) ?? 0);
      // Guards next to blanks would defeat a template's trim; before the first visible one is inside too.
      (visible === spelling ? after : before).add(first);
    }
    this.#after = oneOf(after);
    this.#before = oneOf(before);
  }

  /** For names, descriptions, schema strings and arguments: only what may begin a spelling is touched. */
  inner(text: string, guard: string): string {
    let guarded = text;
    if (this.#before !== null) guarded = guarded.replace(this.#before, `${guard}$&`);
    if (this.#after !== null) guarded = guarded.replace(this.#after, `$&${guard}`);
    return guarded;
  }

  /**
   * For contents, which stand beside template text and other contents: no spelling forms across the
   * border either. Blank content and the blanks around it stay as they are for truth tests and trim.
   */
  whole(text: string, guard: string): string {
    const trimmed = text.trim();
    if (trimmed === "") return text;
    const start = text.length - text.trimStart().length;
    const end = start + trimmed.length;
    return text.slice(0, start) + guard + this.inner(trimmed, guard) + guard + text.slice(end);
  }

  /** Every string of a JSON value, keys too. */
  json(value: unknown, guard: string): unknown {
    if (typeof value === "string") return this.inner(value, guard);
    if (Array.isArray(value)) return value.map((item) => this.json(item, guard));
    if (typeof value !== "object" || value === null || value instanceof NumberText) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.inner(key, guard), this.json(item, guard)]),
    );
  }
}

function oneOf(characters: ReadonlySet<string>): RegExp | null {
  if (characters.size === 0) return null;
  return new RegExp(
    [...characters].map((character) => character.replace(/[\\^$.*+?()[\]{}|/]/u, "\\$&")).join("|"),
    "gu",
  );
}
