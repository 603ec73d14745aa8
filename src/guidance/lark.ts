/** Pieces of llguidance's Lark dialect. */

import type { ControlToken } from "./types.ts";

/** Markers as literals and tokens. */
export class Markup {
  readonly #ids: ReadonlyMap<string, number>;
  readonly #spellings: RegExp | null;

  constructor(controls: readonly ControlToken[]) {
    const spelled = controls.filter(({ text }) => text !== "");
    this.#ids = new Map(spelled.map(({ id, text }) => [text, id]));
    // The longest first, so that none is cut short.
    const spellings = [...this.#ids.keys()].toSorted((a, b) => b.length - a.length);
    this.#spellings =
      spellings.length === 0
        ? null
        : new RegExp(
            spellings.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")).join("|"),
            "gu",
          );
  }

  /** A sequence that matches `text`; "" for none. */
  sequence(text: string): string {
    return this.#parts(text).map(writePart).join(" ");
  }

  /** Does it begin with a token that free text cannot contain? */
  startsWithToken(text: string): boolean {
    return typeof this.#parts(text)[0] === "number";
  }

  /**
   * What is free before `text`, up to and with `text`: two rules named after `name`.
   * @param free a terminal of free text
   */
  until(name: string, free: string, text: string): { rule: string; expression: string } {
    const [first, ...rest] = this.#parts(text);
    if (first === undefined) return { rule: "", expression: "" };
    const tail = rest.map(writePart).join(" ");
    if (typeof first === "number")
      return { rule: "", expression: `(${free})? ${writePart(first)} ${tail}`.trimEnd() };
    return {
      rule: `${name}[lazy]: ${free} ${writePart(first)}\n`,
      expression: `${name} ${tail}`.trimEnd(),
    };
  }

  #parts(text: string): (string | number)[] {
    if (this.#spellings === null) return text === "" ? [] : [text];
    const parts: (string | number)[] = [];
    let at = 0;
    for (const match of text.matchAll(this.#spellings)) {
      if (match.index > at) parts.push(text.slice(at, match.index));
      parts.push(this.#ids.get(match[0]) ?? match[0]);
      at = match.index + match[0].length;
    }
    if (at < text.length) parts.push(text.slice(at));
    return parts;
  }
}

function writePart(part: string | number): string {
  return typeof part === "number" ? `<[${part}]>` : literal(part);
}

export function literal(text: string): string {
  return JSON.stringify(text);
}

/** @param source in the mask engine's syntax */
export function regexTerminal(source: string): string {
  return `/${source.replaceAll("/", "\\/")}/`;
}
