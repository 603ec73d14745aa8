/** What becomes of each field of a request. One table a request type; docs/parameters.md shows them all. */

import { fieldError, isAbsent, type JsonObject } from "./fields.ts";
import type { Warn } from "./warnings.ts";

export type Parameter =
  /** Does what its documentation says, within `note`. */
  | { effect: "honoured"; note?: string }
  /** Harmless without effect: accepted with one warning, none if a `quiet` value asks for what happens anyway. */
  | { effect: "ignored"; why: string; quiet?: (value: unknown) => boolean }
  /** A reply without it would not be what was asked for: a 400, but for values that ask for what happens anyway. */
  | {
      effect: "refused";
      problem: string;
      remedy: string;
      accepts?: (value: unknown) => boolean;
    };

export type ParameterTable = Readonly<Record<string, Parameter>>;

export function honoured(note?: string): Parameter {
  return { effect: "honoured", ...(note === undefined ? {} : { note }) };
}

export function ignored(why: string, quiet?: (value: unknown) => boolean): Parameter {
  return { effect: "ignored", why, ...(quiet === undefined ? {} : { quiet }) };
}

export function refused(
  problem: string,
  remedy: string,
  accepts?: (value: unknown) => boolean,
): Parameter {
  return { effect: "refused", problem, remedy, ...(accepts === undefined ? {} : { accepts }) };
}

/** No key passes in silence: known without effect, or unknown, it is warned about or refused. */
export function checkParameters(table: ParameterTable, body: JsonObject, warn: Warn): void {
  for (const [key, value] of Object.entries(body)) {
    if (isAbsent(value)) continue;
    const parameter = Object.hasOwn(table, key) ? table[key] : undefined;
    if (parameter === undefined) warn(key, "is unknown and ignored");
    else if (parameter.effect === "ignored") {
      if (parameter.quiet?.(value) !== true) warn(key, parameter.why);
    } else if (parameter.effect === "refused" && parameter.accepts?.(value) !== true) {
      throw fieldError("unsupported_value", key, parameter.problem, parameter.remedy);
    }
  }
}

/** The same of an object within a body. */
export function warnOfOthers(
  value: JsonObject,
  field: string,
  known: readonly string[],
  warn: Warn,
): void {
  for (const key of Object.keys(value))
    if (!known.includes(key)) warn(`${field}.${key}`, "is unknown and ignored");
}
