/** Regular expressions of clients against texts of a model: no match may take exponential time. */

import { createContext, runInContext } from "node:vm";
import { matches, maxMatchLength } from "./schema/regex/automaton.ts";
import { asJavaScript, readingsOf } from "./schema/regex/dialect.ts";
import { type Regex, parseRegex } from "./schema/regex/parse.ts";

// Wall-clock time, on a machine that may be busy; the thread that calls it ends a schema after a second.
const matchTimeoutMs = 300;
/** Of a pattern, in characters. */
const maxLength = 32_768;

/** The match took too long: it is not known whether there is one. */
class Unmatched extends Error {}

/** Does the pattern mean something? Also as JavaScript without the flag `u` reads it, and as Python writes it. */
export function readsPattern(pattern: string): boolean {
  return parsed(pattern) !== null || compilable(pattern) !== null;
}

/**
 * For ajv, which only tests, and takes expressions that are written alike for the same one.
 * @throws Unmatched by `test`
 */
export function boundedRegex(pattern: string, _flags: string): RegExp {
  const regex = parsed(pattern);
  const javaScript = compilable(pattern);
  const test = (text: string): boolean => {
    if (regex !== null && text.length <= maxMatchLength) return matches(regex, text);
    try {
      const context = createContext({ ...javaScript, text });
      const code = "new RegExp(source, flags).test(text)";
      return runInContext(code, context, { timeout: matchTimeoutMs }) as boolean;
    } catch {
      throw new Unmatched(`the pattern ${JSON.stringify(pattern)} takes too long to match`);
    }
  };
  return { test, toString: () => `/${pattern}/` } as RegExp;
}

/** Null: JavaScript does not read it, or it is too long to be read. */
function compilable(pattern: string): { source: string; flags: string } | null {
  if (pattern.length > maxLength) return null;
  const { source: whole, ignoresCase, dotsLines } = asJavaScript(pattern);
  for (const { source, unicode } of readingsOf(whole)) {
    const flags = `${unicode ? "u" : ""}${ignoresCase ? "i" : ""}${dotsLines ? "s" : ""}`;
    try {
      // Only its syntax is looked at.
      void new RegExp(source, flags);
      return { source, flags };
    } catch {
      // Another one may be.
    }
  }
  return null;
}

function parsed(pattern: string): Regex | null {
  try {
    return parseRegex(pattern);
  } catch {
    return null;
  }
}
