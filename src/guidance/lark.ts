/** Pieces of llguidance's Lark dialect. */

import { isJsonObject } from "../json.ts";
import type { JsonObject } from "./schema/types.ts";
import { withMarkers } from "./schema/write/unique.ts";
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
      spellings.length === 0 ? null : new RegExp(spellings.map(escapeRegex).join("|"), "gu");
  }

  /** A sequence that matches `text`; "" for none. */
  sequence(text: string): string {
    return this.#parts(text).map(writePart).join(" ");
  }

  /** Does it begin with a token that free text cannot contain? */
  startsWithToken(text: string): boolean {
    return typeof this.#parts(text)[0] === "number";
  }

  /** Free text can contain all of it. */
  isText(text: string): boolean {
    return this.#parts(text).every((part) => typeof part === "string");
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

export function escapeRegex(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&");
}

/** How JSON is written: fixed, so that a model cannot spend its tokens on blanks. Regular expressions. */
export interface JsonStyle {
  itemSeparator: string;
  keySeparator: string;
}

/** The mask engine reads separators as regular expressions; a format's are texts. */
export function escapedSeparators(style: JsonStyle): JsonStyle {
  const { itemSeparator, keySeparator } = style;
  return { itemSeparator: escapeRegex(itemSeparator), keySeparator: escapeRegex(keySeparator) };
}

/** As documents are written: a blank after separators if the model likes. */
export const documentStyle: JsonStyle = { itemSeparator: ", ?", keySeparator: ": ?" };

/** @param schema in the mask engine's keywords */
export function plainJson(schema: JsonObject, style: JsonStyle): string {
  const options = {
    whitespace_flexible: false,
    item_separator: style.itemSeparator,
    key_separator: style.keySeparator,
  };
  return `%json ${JSON.stringify({ ...(withMarkers(schema) as JsonObject), "x-guidance": options })}`;
}

export const anyObject: JsonObject = { type: "object", additionalProperties: {} };

/** `{}`, spelled out. */
export const anything: JsonObject = {
  anyOf: [
    anyObject,
    { type: "array", items: {} },
    { type: "string" },
    { type: "number" },
    { type: "boolean" },
    { type: "null" },
  ],
};

/** Before the name of a definition, in a reference. */
const toDefinition = "#/$defs/";

/** What a reference leads to: never another one. @param definitions as `compileSchema` writes them */
export function definitionOf(reference: string, definitions: unknown): JsonObject {
  return (definitions as Record<string, JsonObject>)[reference.slice(toDefinition.length)]!;
}

/** The ways to be a value, each with its type. @param definitions as `compileSchema` writes them */
export function optionsOf(schema: JsonObject, definitions: unknown): JsonObject[] {
  const { $ref } = schema;
  const own = typeof $ref === "string" ? definitionOf($ref, definitions) : schema;
  const spelled = Object.keys(own).length === 0 ? anything : own;
  return Array.isArray(spelled["anyOf"]) ? (spelled["anyOf"] as JsonObject[]) : [spelled];
}

/** Text without quotes: an expression of terminals. */
export interface TextTerminal {
  terminal: string;
  mayBeEmpty: boolean;
}

/** @param schema of strings, as `compileSchema` writes it */
export function textTerminal(schema: JsonObject): TextTerminal {
  const conditions = (schema["allOf"] ?? [schema]) as JsonObject[];
  const terminals = conditions.flatMap(({ pattern }) =>
    typeof pattern === "string" ? [regexTerminal(pattern.slice(1, -1))] : [],
  );
  const min = Number(schema["minLength"] ?? 0);
  const max = schema["maxLength"] === undefined ? "" : Number(schema["maxLength"]);
  const mayBeEmpty = terminals.length === 0 && min === 0;
  if (terminals.length === 0 || min > 0 || max !== "") terminals.push(`/(?s:.{${min},${max}})/`);
  return { terminal: terminals.join(" & "), mayBeEmpty };
}

/** The ways to be an object. */
export function objectsOf(schema: JsonObject): JsonObject[] {
  const options = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema];
  return (options as unknown[]).filter(isJsonObject).filter(({ type }) => type === "object");
}

export interface Rules {
  expression: string;
  rules: string;
}

export interface SequenceItem {
  expression: string;
  required: boolean;
}

/** Items in their order, optional ones left out at will, with separators between those that are there. */
export function sequenceRules(
  items: readonly SequenceItem[],
  separator: string,
  name: string,
  rules: string[],
): string {
  // After another item: separator first. From the last to the first, so that each is a rule once.
  let rest = '""';
  const after: string[] = [];
  for (let index = items.length - 1; index >= 0; index--) {
    const { expression, required } = items[index]!;
    const item = `${separator} ${expression}`;
    rules.push(`${name}_a${index}: ${required ? item : `(${item})?`} ${rest}\n`);
    after[index] = rest;
    rest = `${name}_a${index}`;
  }
  let first = '""';
  for (let index = items.length - 1; index >= 0; index--) {
    const { expression, required } = items[index]!;
    const here = `${expression} ${after[index]}`;
    rules.push(`${name}_f${index}: ${required ? here : `${here} | ${first}`}\n`);
    first = `${name}_f${index}`;
  }
  return first;
}

/** Numbers of items. */
export interface ListLimits {
  min: number;
  max: number;
}

/**
 * Items at the first places, one of their own each, and any number of `others` behind them.
 * @param others a rule; null: there are none
 * @param name what the rules' names begin with
 */
export function listRules(
  { places, others }: { places: readonly string[]; others: string | null },
  { min, max }: ListLimits,
  separator: string,
  { name, rules }: { name: string; rules: string[] },
): string {
  const first = places.slice(0, max);
  const repeated = (least: number, most: number): string => {
    if (others === null || most <= 0) return '""';
    return `(${separator} ${others}){${Math.max(0, least)},${most === Infinity ? "" : most}}`;
  };
  let list = repeated(min - first.length, max - first.length);
  if (first.length === 0 && others !== null && max > 0) {
    const more = `${others} ${repeated(min - 1, max - 1)}`;
    list = min > 0 ? more : `(${more})?`;
  }
  for (let index = first.length - 1; index >= 0; index--) {
    const place = `${name}_p${index}`;
    rules.push(`${place}: ${index === 0 ? "" : separator} ${first[index]!} ${list}\n`);
    list = index < min ? place : `${place}?`;
  }
  return list;
}

/**
 * A list of these items, each once at most: a bit of the rules' parameter tells of each whether it is there.
 * @param name of the rule, and what other rules' names begin with
 */
export function distinctRules(
  items: readonly string[],
  separator: string,
  name: string,
  { min, max }: ListLimits,
): string {
  const next = `${name}_n`;
  const first = items.map((item, bit) => `${item} ${next}::0x${(1n << BigInt(bit)).toString(16)}`);
  const others = items.map(
    (item, bit) =>
      `${separator} ${item} ${next}::set_bit(${bit}) %if and(bit_clear(${bit}), bit_count_lt(_, ${max}))`,
  );
  const isEmpty = min === 0 ? ['""'] : [];
  const ways = max === 0 ? isEmpty : [...isEmpty, ...first];
  const end = `"" %if bit_count_ge(_, ${min})`;
  return `${name}: ${ways.join(" | ")}\n${next}::_: ${[end, ...others].join(" | ")}\n`;
}
