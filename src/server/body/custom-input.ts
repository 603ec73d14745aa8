/** The input of a custom tool's call. The model writes it as arguments with one string: `{"input": "…"}`. */

import { exactJson, isJsonObject, parseExactJson } from "../../json.ts";

/** Ends where the text begins. */
const head = /^\s*\{\s*"input"\s*:\s*"/;
const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
};

/** What the model would have written. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The text in the arguments while they come in. */
export class CustomInput {
  /** Before the text: what came so far. */
  #head = "";
  #place: "head" | "text" | "end" = "head";
  /** Characters of an escape, its backslash first. */
  #escape = "";
  /** The first half of a pair of surrogates: told with the second. */
  #half = "";
  #told = "";

  /** @returns what the text goes on with */
  add(piece: string): string {
    let text = "";
    for (const character of piece.split("")) text += this.#read(character);
    this.#told += text;
    return text;
  }

  /**
   * The arguments are whole. @returns the rest of the text: all of it if the arguments were not of the form,
   * which only a model without a mask writes; then they are the text
   */
  finish(whole: string): string {
    const text = inputOf(whole);
    const rest = text.startsWith(this.#told) ? text.slice(this.#told.length) : "";
    this.#told += rest;
    return rest;
  }

  #read(character: string): string {
    if (this.#place === "end") return "";
    if (this.#place === "head") {
      this.#head += character;
      if (head.test(this.#head)) this.#place = "text";
      return "";
    }
    if (this.#escape !== "") return this.#readEscape(character);
    if (character === "\\") this.#escape = character;
    else if (character === '"') this.#place = "end";
    else return this.#whole(character);
    return "";
  }

  #readEscape(character: string): string {
    this.#escape += character;
    const isUnicode = this.#escape[1] === "u";
    if (isUnicode && this.#escape.length < 6) return "";
    const text = isUnicode
      ? String.fromCharCode(Number.parseInt(this.#escape.slice(2), 16))
      : (escapes[character] ?? character);
    this.#escape = "";
    return this.#whole(text);
  }

  #whole(unit: string): string {
    const text = this.#half + unit;
    this.#half = "";
    const code = unit.charCodeAt(0);
    if (code < 0xd800 || code > 0xdbff) return text;
    this.#half = unit;
    return text.slice(0, -1);
  }
}

/** The arguments themselves, if they were not of the form. */
export function inputOf(whole: string): string {
  const value = parseExactJson(whole);
  if (!isJsonObject(value) || !("input" in value)) return whole;
  return typeof value["input"] === "string" ? value["input"] : exactJson(value["input"]);
}
