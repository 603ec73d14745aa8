/** Properties whose names a schema does not list, for forms that do not write them as JSON. */

import { isJsonObject } from "../json.ts";
import { regexTerminal } from "./lark.ts";
import { areDisjoint } from "./schema/regex/automaton.ts";
import { RegexError } from "./schema/regex/parse.ts";
import { readWhole, writeAllBut, writeOneOf } from "./schema/regex/write.ts";
import type { JsonObject } from "./schema/types.ts";

export interface FreeProperty {
  name: FreeName;
  schema: JsonObject;
}

/** Regular expressions of whole names, in the mask engine's syntax. */
export interface FreeName {
  /** Null: any. */
  pattern: string | null;
  excluded: readonly string[];
}

/**
 * @param object as `compileSchema` writes it
 * @param writable the names that the form can hold, as a regular expression. Default: all
 * @returns one for each pattern of names that can be written and are not listed, and one for all others
 */
export function freeProperties(object: JsonObject, writable?: string): FreeProperty[] {
  const required = (object["required"] ?? []) as string[];
  if (Number(object["maxProperties"] ?? Infinity) <= required.length) return [];
  const names = Object.keys((object["properties"] ?? {}) as JsonObject);
  const listed = names.length === 0 ? [] : [writeOneOf(names)];
  const patterns = Object.entries((object["patternProperties"] ?? {}) as JsonObject).map(
    ([source, schema]) => ({ pattern: source.slice(1, -1), schema }),
  );
  const others = { pattern: null, schema: object["additionalProperties"] };
  const matched = patterns.map(({ pattern }) => pattern);
  const needed = [
    // Counted, it has too many states to be compared.
    ...(writable === undefined ? [] : [writable.replace(bareLength, "*")]),
    ...(names.length === 0 ? [] : [writeAllBut(names)]),
  ];
  return [...patterns, others].flatMap(({ pattern, schema }) => {
    if (pattern !== null && needed.some((each) => excludes(pattern, each))) return [];
    const excluded = pattern === null ? [...listed, ...matched] : listed;
    return isJsonObject(schema) ? [{ name: { pattern, excluded }, schema }] : [];
  });
}

/** No text matches both: to the mask engine a dead end. @returns false also where it cannot be told */
function excludes(one: string, other: string): boolean {
  try {
    return areDisjoint(readWhole(one), readWhole(other), () => {});
  } catch (error) {
    if (error instanceof RegexError) return false;
    throw error;
  }
}

/**
 * @param writable the names that the form can hold, as a regular expression
 * @param open what stands before a name, as one. The mask engine does not go back: a name that is listed is one lexeme with it, so
 *   this one is, too
 */
export function nameTerminal({ pattern, excluded }: FreeName, writable: string, open = ""): string {
  const terminal = (name: string): string => regexTerminal(`${open}(?:${name})`);
  const terminals = [writable, ...(pattern === null ? [] : [pattern])].map(terminal);
  return [...terminals, ...excluded.map((each) => `~${terminal(each)}`)].join(" & ");
}

/** Of a name without its ends. */
const bareLength = "{0,126}";

/**
 * Names without quotes: up to 128 characters with no blank at either end, as the parser would drop it.
 * @param ends characters that end a name, as in a class
 */
export function bareName(ends: string): string {
  const border = `[^\\s\\x00-\\x1f\\x{feff}${ends}]`;
  return `${border}([^\\x00-\\x1f${ends}]${bareLength}${border})?`;
}
