/** Properties whose names a schema does not list, for forms that do not write them as JSON. */

import { isJsonObject } from "../json.ts";
import { regexTerminal } from "./lark.ts";
import { writeOneOf } from "./schema/regex/write.ts";
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

/** @param object as `compileSchema` writes it. @returns one for each pattern of names, and one for all others */
export function freeProperties(object: JsonObject): FreeProperty[] {
  const required = (object["required"] ?? []) as string[];
  if (Number(object["maxProperties"] ?? Infinity) <= required.length) return [];
  const names = Object.keys((object["properties"] ?? {}) as JsonObject);
  const listed = names.length === 0 ? [] : [writeOneOf(names)];
  const patterns = Object.entries((object["patternProperties"] ?? {}) as JsonObject).map(
    ([source, schema]) => ({ pattern: source.slice(1, -1), schema }),
  );
  const others = { pattern: null, schema: object["additionalProperties"] };
  const matched = patterns.map(({ pattern }) => pattern);
  return [...patterns, others].flatMap(({ pattern, schema }) => {
    const excluded = pattern === null ? [...listed, ...matched] : listed;
    return isJsonObject(schema) ? [{ name: { pattern, excluded }, schema }] : [];
  });
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

/**
 * Names without quotes: up to 128 characters with no blank at either end, as the parser would drop it.
 * @param ends characters that end a name, as in a class
 */
export function bareName(ends: string): string {
  const border = `[^\\s\\x00-\\x1f\\x{feff}${ends}]`;
  return `${border}([^\\x00-\\x1f${ends}]{0,126}${border})?`;
}
