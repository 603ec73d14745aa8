/** Values of options: from text (flags, environment), from JSON, and of several sources together. */

import { isJsonObject } from "../../json.ts";
import { resolve } from "node:path";
import { type FermataError, invalidOption } from "../../errors.ts";
import { didYouMean } from "../../near-names.ts";
import {
  flagOf,
  type OptionSpec,
  type OptionTable,
  type ValuesOf,
  variableOf,
} from "./option-table.ts";

/** Where a value was written; messages name it. */
export interface Source {
  name: string;
  /** What paths are relative to. */
  cwd: string;
}

interface NamedOption {
  key: string;
  spec: OptionSpec;
}

type SpecOf<Kind> = Extract<OptionSpec, { kind: Kind }>;

/** By key of the option. */
export type Layer = ReadonlyMap<string, unknown>;

/** What a command's own options are: flags come first, then the environment. @throws FermataError invalid_option */
export function ownOptions<Table extends OptionTable>(
  table: Table,
  flags: Layer,
  { env, cwd }: { env: NodeJS.ProcessEnv; cwd: string },
): ValuesOf<Table> {
  return mergeLayers(table, [flags, fromEnvironment(table, env, cwd)]);
}

/** The first layer that has a value counts. */
export function mergeLayers<Table extends OptionTable>(
  table: Table,
  layers: readonly Layer[],
): ValuesOf<Table> {
  const values = Object.entries(table).map(([key, spec]) => [
    key,
    layers.find((layer) => layer.has(key))?.get(key) ?? defaultOf(spec),
  ]);
  return Object.fromEntries(values) as ValuesOf<Table>;
}

function defaultOf(spec: OptionSpec): unknown {
  if (spec.kind === "list") return [];
  if (spec.kind === "parts") return allParts(spec, {});
  return "default" in spec ? spec.default : undefined;
}

/** @throws FermataError invalid_option */
export function fromEnvironment(
  table: OptionTable,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [key, spec] of Object.entries(table)) {
    const names = [variableOf(key), ...(spec.variables ?? [])];
    const isGiven = (name: string): boolean =>
      !isServiceLink(name, env[name]) &&
      (spec.neverEmpty === true ? env[name] !== undefined : (env[name] ?? "") !== "");
    const name = names.find(isGiven);
    if (name !== undefined)
      values.set(key, valueFromText({ key, spec }, env[name]!, { name, cwd }));
  }
  return values;
}

/** What Kubernetes sets in every pod beside a Service "fermata", and Docker beside a linked container. */
function isServiceLink(name: string, value = ""): boolean {
  return name === variableOf("port") && /^(tcp|udp|sctp):\/\//.test(value);
}

/** @throws FermataError invalid_option */
export function valueFromText(option: NamedOption, text: string, source: Source): unknown {
  const { key, spec } = option;
  switch (spec.kind) {
    case "integer":
      if (spec.words !== undefined && text.trim() in spec.words) return spec.words[text.trim()];
      if (!/^-?\d+$/.test(text.trim()))
        throw bad(key, source, `needs a ${integerWanted(spec)}, not "${text}"`);
      return checkRange(key, Number(text), spec, source);
    case "number":
      if (text.trim() === "" || !Number.isFinite(Number(text)))
        throw bad(key, source, `needs a number, not "${text}"`);
      return checkRange(key, Number(text), spec, source);
    case "boolean":
      return booleanFromText(key, text, source);
    case "choice":
      return checkChoice(key, text, spec, source);
    case "path":
      checkText(key, text, source);
      return spec.isWord?.(text) === true ? text : resolve(source.cwd, text);
    case "list":
      return spec.split ? splitList(text) : [checkText(key, text, source)];
    case "parts":
      return allParts(spec, partsFromText(key, text, spec, source));
    case "string":
      return checkText(key, text, source);
  }
}

/** @throws FermataError invalid_option */
export function valueFromJson(option: NamedOption, value: unknown, source: Source): unknown {
  const { key, spec } = option;
  if (spec.kind === "integer" && typeof value === "string" && spec.words !== undefined)
    return valueFromText(option, value, source);
  if (spec.kind === "integer") {
    if (typeof value !== "number" || !Number.isInteger(value))
      throw bad(key, source, "needs a whole number");
    return checkRange(key, value, spec, source);
  }
  if (spec.kind === "number") {
    if (typeof value !== "number" || !Number.isFinite(value))
      throw bad(key, source, "needs a number");
    return checkRange(key, value, spec, source);
  }
  if (spec.kind === "boolean") {
    if (typeof value !== "boolean") throw bad(key, source, "needs true or false");
    return value;
  }
  if (spec.kind === "parts") {
    if (!isJsonObject(value) && typeof value !== "number")
      throw bad(key, source, `needs ${partsWanted(spec, "object")}`);
    const given = isJsonObject(value) ? value : { [Object.keys(spec.parts)[0]!]: value };
    return allParts(spec, checkParts(key, given, spec, source));
  }
  if (spec.kind === "list" && Array.isArray(value)) {
    if (!value.every((item) => typeof item === "string"))
      throw bad(key, source, "needs an array of strings");
    if (spec.neverEmpty === true && value.length === 0) throw bad(key, source, "needs a value");
    return spec.neverEmpty === true ? value.map((item) => checkText(key, item, source)) : value;
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
  if (text.trim() === "") throw bad(key, source, "needs a value");
  return text;
}

function checkRange(
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
  { choices, synonyms = {} }: SpecOf<"choice">,
  source: Source,
): string {
  const word = text.trim().toLowerCase();
  const choice = choices.find((candidate) => candidate === (synonyms[word] ?? word));
  if (choice !== undefined) return choice;
  const problem = `must be one of ${choices.join(", ")}, not "${text}"`;
  throw bad(key, source, problem, didYouMean(text, choices));
}

function booleanFromText(key: string, text: string, source: Source): boolean {
  const choice = text.toLowerCase();
  if (["true", "1", "yes", "on"].includes(choice)) return true;
  if (["false", "0", "no", "off"].includes(choice)) return false;
  throw bad(key, source, `needs true or false, not "${text}"`);
}

function integerWanted({ words = {} }: SpecOf<"integer">): string {
  const names = Object.keys(words);
  return names.length === 0 ? "whole number" : `whole number, ${names.join(" or ")}`;
}

/** `60`, or `silence=60,call=600` */
function partsFromText(
  key: string,
  text: string,
  spec: SpecOf<"parts">,
  source: Source,
): Record<string, number> {
  const first = Object.keys(spec.parts)[0]!;
  const pairs = text.split(",").map((piece): [string, number] => {
    const [, name = first, number] = /^(?:\s*(\w+)\s*=)?\s*(\d+)\s*$/.exec(piece) ?? [];
    if (number === undefined)
      throw bad(key, source, `needs ${partsWanted(spec, "text")}, not "${text}"`);
    return [name, Number(number)];
  });
  return checkParts(key, Object.fromEntries(pairs), spec, source);
}

function checkParts(
  key: string,
  given: object,
  { parts, max }: SpecOf<"parts">,
  source: Source,
): Record<string, number> {
  const names = Object.keys(parts);
  for (const [name, value] of Object.entries(given)) {
    if (!names.includes(name)) {
      const problem = `has no part "${name}"; there are ${names.join(", ")}`;
      throw bad(key, source, problem, didYouMean(name, names));
    }
    const part = { ...source, name: `${source.name}: ${name}` };
    if (!Number.isInteger(value)) throw bad(key, part, "needs a whole number");
    checkRange(key, value as number, { min: parts[name]?.min ?? 1, max }, part);
  }
  return given as Record<string, number>;
}

/** With defaults in place of the parts that are not given. */
function allParts(
  { parts }: SpecOf<"parts">,
  given: Readonly<Record<string, number>>,
): Record<string, number> {
  const all: Record<string, number> = {};
  for (const [name, { default: value, atLeast }] of Object.entries(parts))
    all[name] = given[name] ?? Math.max(value, atLeast === undefined ? 0 : (all[atLeast] ?? 0));
  return all;
}

function partsWanted({ parts }: SpecOf<"parts">, form: "text" | "object"): string {
  const names = Object.keys(parts);
  return form === "text"
    ? `a whole number, or ${names[0]}=N and so on of ${names.join(", ")}`
    : `a whole number, or an object with numbers for ${names.join(", ")}`;
}

function bad(key: string, source: Source, problem: string, hint = ""): FermataError {
  return invalidOption(`${source.name} ${problem}.${hint}`, flagOf(key));
}
