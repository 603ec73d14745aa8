/** A call's arguments in readable form. Pure. */

import { showControls } from "../markdown/safe-text.ts";

/** Null if the JSON is incomplete or not an object. */
export function argumentEntries(json: string): [name: string, value: string][] | null {
  let value: unknown;
  try {
    value = JSON.parse(json === "" ? "{}" : json);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return Object.entries(value).map(([name, each]) => [showControls(name), valueText(each)]);
}

function valueText(value: unknown): string {
  return showControls(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

/** One line for the head of a card. */
export function argumentLine(json: string, maxLength = 200): string {
  const entries = argumentEntries(json);
  const line =
    entries === null
      ? showControls(json)
      : entries.map(([name, value]) => `${name}: ${value}`).join(", ");
  const flat = line.replaceAll(/\s+/g, " ");
  // While the arguments stream, show their end.
  if (flat.length <= maxLength) return flat;
  return entries === null ? `…${flat.slice(-maxLength)}` : `${flat.slice(0, maxLength)}…`;
}
