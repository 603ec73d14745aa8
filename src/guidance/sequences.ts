/** Rules for things that follow each other, some of which may be left out. */

import { isJsonObject } from "../json.ts";
import type { JsonObject } from "./schema/types.ts";

export interface Rules {
  expression: string;
  rules: string;
}

/** The ways to be an object. */
export function objectsOf(schema: JsonObject): JsonObject[] {
  const options = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema];
  return (options as unknown[]).filter(isJsonObject).filter(({ type }) => type === "object");
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
  if (separator === "")
    return items
      .map((item) => (item.required ? item.expression : `(${item.expression})?`))
      .join(" ");
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
