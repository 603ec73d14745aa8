/** Values of options, from text (flags, environment) and from JSON. */

import { resolve } from "node:path";
import { FermataError } from "../errors.ts";
import { didYouMean } from "./nearest.ts";
import { flagOf, type OptionSpec } from "./option-table.ts";

/** Where a value was written; messages name it. */
export interface Source {
  name: string;
  cwd: string;
}

export interface NamedOption {
  key: string;
  spec: OptionSpec;
}

/** @throws FermataError invalid_option */
export function valueFromText(option: NamedOption, text: string, source: Source): unknown {
  const { key, spec } = option;
  switch (spec.kind) {
    case "integer":
      if (!/^-?\d+$/.test(text.trim()))
        throw bad(key, source, `needs a whole number, not "${text}"`);
      return checkInteger(key, Number(text), spec, source);
    case "boolean":
      return booleanFromText(key, text, source);
    case "choice":
      return checkChoice(key, text, spec, source);
    case "path":
      return checkText(key, text, source) && resolve(source.cwd, text);
    case "list":
      return spec.split ? splitList(text) : [checkText(key, text, source)];
    case "string":
      return checkText(key, text, source);
  }
}

/** @throws FermataError invalid_option */
export function valueFromJson(option: NamedOption, value: unknown, source: Source): unknown {
  const { key, spec } = option;
  if (spec.kind === "integer") {
    if (typeof value !== "number" || !Number.isInteger(value))
      throw bad(key, source, "needs a whole number");
    return checkInteger(key, value, spec, source);
  }
  if (spec.kind === "boolean") {
    if (typeof value !== "boolean") throw bad(key, source, "needs true or false");
    return value;
  }
  if (spec.kind === "list" && Array.isArray(value)) {
    if (!value.every((item) => typeof item === "string"))
      throw bad(key, source, "needs an array of strings");
    return value;
  }
  if (typeof value !== "string")
    throw bad(key, source, spec.kind === "list" ? "needs an array of strings" : "needs a string");
  return valueFromText(option, value, source);
}

/** A comma separates; nothing between two is an empty argument. */
function splitList(text: string): string[] {
  return text === "" ? [] : text.split(",");
}

function checkText(key: string, text: string, source: Source): string {
  if (text === "") throw bad(key, source, "needs a value");
  return text;
}

function checkInteger(
  key: string,
  value: number,
  { min, max }: { min: number; max: number },
  source: Source,
): number {
  if (value < min || value > max)
    throw bad(key, source, `must be from ${min} to ${max}, not ${value}`);
  return value;
}

/** Upper case is fine: LOGLEVEL=DEBUG. */
function checkChoice(
  key: string,
  text: string,
  { choices, synonyms = {} }: Extract<OptionSpec, { kind: "choice" }>,
  source: Source,
): string {
  const word = text.toLowerCase();
  const choice = choices.find((candidate) => candidate === (synonyms[word] ?? word));
  if (choice !== undefined) return choice;
  throw bad(
    key,
    source,
    `must be one of ${choices.join(", ")}, not "${text}"`,
    didYouMean(text, choices),
  );
}

function booleanFromText(key: string, text: string, source: Source): boolean {
  const choice = text.toLowerCase();
  if (["true", "1", "yes", "on"].includes(choice)) return true;
  if (["false", "0", "no", "off"].includes(choice)) return false;
  throw bad(key, source, `needs true or false, not "${text}"`);
}

function bad(key: string, source: Source, problem: string, hint = ""): FermataError {
  return new FermataError("invalid_option", `${source.name} ${problem}.${hint}`, {
    param: flagOf(key),
  });
}
