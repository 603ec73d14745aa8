/**
 * Models that were trained on OpenAI's strict schemas write null for what they leave out, whether the schema lists null or not.
 */

import { isJsonObject } from "../json.ts";
import type { Fault, Validate } from "./validator.ts";

const most = 64;

/**
 * Leaves out one property after the other that is null where the schema refuses that.
 * @param value changed
 * @returns the value as JSON if it fits then; null: it does not, or nothing was left out
 */
export function fitsWithoutNulls(value: unknown, first: Fault, validate: Validate): string | null {
  let fault: Fault | null = first;
  for (let left = most; left > 0 && fault?.place; left--) {
    if (!leaveOut(value, fault.place)) return null;
    fault = validate(value);
  }
  return fault === null ? JSON.stringify(value) : null;
}

/** @returns false: what is there is not a property that is null */
function leaveOut(value: unknown, pointer: string): boolean {
  const names = pointer.split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = names.pop()!;
  let parent = value;
  for (const name of names.slice(1))
    parent =
      typeof parent === "object" && parent !== null && Object.hasOwn(parent, name)
        ? (parent as Record<string, unknown>)[name]
        : undefined;
  if (!isJsonObject(parent) || !Object.hasOwn(parent, last) || parent[last] !== null) return false;
  delete parent[last];
  return true;
}
