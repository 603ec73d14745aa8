/** Numbers and strings: from facts to the mask engine's keywords. */

import type { ScalarAlternative } from "./alternatives.ts";
import type { Facts, PatternFact } from "./facts.ts";
import { formatOf } from "./formats.ts";
import { matches, maxMatchLength } from "./regex-match.ts";
import { RegexError, parseRegex } from "./regex.ts";
import { holdableTogether } from "./regex-cost.ts";
import { writeCharacter, writeWhole } from "./regex-write.ts";
import type { JsonObject, SchemaIssue } from "./types.ts";

type Report = (issue: SchemaIssue) => void;

export function scalarAlternatives(facts: Facts, report: Report): ScalarAlternative[] {
  switch (facts.type) {
    case "null":
      return facts.excluded.length > 0
        ? []
        : [{ type: "null", schema: { type: "null" }, values: [null] }];
    case "boolean":
      return booleans(facts);
    case "number":
      return numbers(facts, report);
    default:
      return strings(facts, report);
  }
}

function booleans(facts: Facts): ScalarAlternative[] {
  const values = (facts.values ?? [true, false]).filter((value) => !facts.excluded.includes(value));
  if (values.length === 0) return [];
  const schema = values.length === 2 ? { type: "boolean" } : { const: values[0] };
  return [{ type: "boolean", schema, values }];
}

function numbers(facts: Facts, report: Report): ScalarAlternative[] {
  if (facts.values !== null) {
    const excluded = new Set(facts.excluded);
    const values = facts.values.filter(
      (value) => !excluded.has(value) && isNumberOf(facts, value as number),
    );
    return values.length === 0 ? [] : [{ type: "number", schema: { enum: values }, values }];
  }
  if (facts.integer === false) {
    const reason = "is negated for integer: numbers with a fraction cannot be told from others";
    report({ path: "#", keyword: "type", reason });
    facts.integer = null;
  }
  return intervals(facts).map((interval) => ({
    type: "number",
    values: null,
    schema: {
      type: facts.integer === true ? "integer" : "number",
      ...interval,
      ...(facts.multiples.length === 1 ? { multipleOf: facts.multiples[0] } : {}),
      ...(facts.multiples.length > 1
        ? { allOf: facts.multiples.map((multipleOf) => ({ multipleOf })) }
        : {}),
    },
  }));
}

function isNumberOf(facts: Facts, value: number): boolean {
  return (
    value >= facts.minimum &&
    value <= facts.maximum &&
    value > facts.exclusiveMinimum &&
    value < facts.exclusiveMaximum &&
    (facts.integer === null || Number.isInteger(value) === facts.integer) &&
    facts.multiples.every((multiple) => isMultiple(value, multiple))
  );
}

function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  return Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient));
}

/** The range without the excluded numbers. */
function intervals(facts: Facts): JsonObject[] {
  const whole = rangeOf(facts);
  const holes = (facts.excluded as number[])
    .filter((value) => isNumberOf(facts, value))
    .toSorted((a, b) => a - b);
  const pieces: JsonObject[] = [];
  let low: JsonObject = whole.low;
  for (const hole of new Set(holes)) {
    pieces.push({ ...low, exclusiveMaximum: hole });
    low = { exclusiveMinimum: hole };
  }
  return [...pieces, { ...low, ...whole.high }].filter(isInhabited);
}

function rangeOf(facts: Facts): { low: JsonObject; high: JsonObject } {
  const low: JsonObject = {};
  const high: JsonObject = {};
  if (facts.exclusiveMinimum >= facts.minimum && facts.exclusiveMinimum > -Infinity)
    low["exclusiveMinimum"] = facts.exclusiveMinimum;
  else if (facts.minimum > -Infinity) low["minimum"] = facts.minimum;
  if (facts.exclusiveMaximum <= facts.maximum && facts.exclusiveMaximum < Infinity)
    high["exclusiveMaximum"] = facts.exclusiveMaximum;
  else if (facts.maximum < Infinity) high["maximum"] = facts.maximum;
  return { low, high };
}

function isInhabited(range: JsonObject): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = range as Record<string, number>;
  const low = minimum ?? exclusiveMinimum ?? -Infinity;
  const high = maximum ?? exclusiveMaximum ?? Infinity;
  const isOpen = exclusiveMinimum !== undefined || exclusiveMaximum !== undefined;
  return low < high || (low === high && !isOpen);
}

function strings(facts: Facts, report: Report): ScalarAlternative[] {
  const patterns = [...facts.patterns];
  const regexes: string[] = [];
  const formats: string[] = [];
  let { maxLength } = facts;
  for (const name of new Set(facts.formats)) {
    const format = formatOf(name);
    if (typeof format === "string") continue;
    maxLength = Math.min(maxLength, format.maxLength ?? Infinity);
    if (format.pattern === undefined) formats.push(name);
    else patterns.push(wholePattern(format.pattern));
  }
  if (facts.minLength > maxLength) return [];
  if (facts.values !== null) {
    const excluded = new Set(facts.excluded);
    const values = facts.values.filter(
      (value) =>
        !excluded.has(value) &&
        hasLength(facts, value as string) &&
        fits(value as string, patterns),
    );
    if (values.length === 0) return [];
    const more = formats.length > 0 ? { allOf: formats.map((format) => ({ format })) } : {};
    const listed =
      values.length > maxListed
        ? { pattern: `^${writeOneOf(trieOf(values as string[]))}$` }
        : { enum: values };
    return [{ type: "string", schema: { type: "string", ...listed, ...more }, values }];
  }
  const bySource = new Map(patterns.map((pattern) => [pattern.source, pattern]));
  const holdable = holdableTogether([...bySource.values()]);
  for (const pattern of bySource.values()) {
    if (!holdable.has(pattern)) {
      const reason = "has too many others beside it, or too long ones, for one text";
      report({ path: pattern.node?.path ?? "#", keyword: "pattern", reason });
      continue;
    }
    try {
      regexes.push(writeWhole(pattern.regex));
    } catch (error) {
      if (!(error instanceof RegexError)) throw error;
      const reason = `has a pattern that ${error.message}`;
      report({ path: pattern.node?.path ?? "#", keyword: "pattern", reason });
    }
  }
  const excluded = facts.excluded as string[];
  if (excluded.length > 0) regexes.push(writeAllBut(excluded));
  const conditions: JsonObject[] = [
    ...regexes.map((regex) => ({ pattern: `^(?:${regex})$` })),
    ...formats.map((format) => ({ format })),
  ];
  const [first] = conditions;
  return [
    {
      type: "string",
      values: null,
      schema: {
        type: "string",
        ...(facts.minLength > 0 ? { minLength: facts.minLength } : {}),
        ...(maxLength < Infinity ? { maxLength } : {}),
        ...(conditions.length === 1 ? first : {}),
        ...(conditions.length > 1 ? { allOf: conditions } : {}),
      },
    },
  ];
}

/** The mask engine takes 50,000 values in all; as a tree of their beginnings more of them compile in less time. */
const maxListed = 1000;

function writeOneOf(node: Trie): string {
  const options = [...node.next].map(
    ([character, next]) => writeCharacter(character.codePointAt(0) ?? 0) + writeOneOf(next),
  );
  if (options.length === 0) return "";
  if (options.length === 1 && !node.isEnd) return options[0]!;
  return `(?:${options.join("|")})${node.isEnd ? "?" : ""}`;
}

function wholePattern(source: string): PatternFact {
  const text = `^(?:${source})$`;
  return { source: text, regex: parseRegex(text), node: undefined as never };
}

function hasLength(facts: Facts, value: string): boolean {
  const length = Array.from(value).length;
  return length >= facts.minLength && length <= facts.maxLength;
}

/** A constant too long to be matched here is kept: what it must match is left to the validator's word. */
function fits(value: string, patterns: readonly PatternFact[]): boolean {
  return value.length > maxMatchLength || patterns.every(({ regex }) => matches(regex, value));
}

/** A regular expression of every text but these. */
export function writeAllBut(texts: readonly string[]): string {
  return writeTrie(trieOf(texts));
}

interface Trie {
  isEnd: boolean;
  next: Map<string, Trie>;
}

function trieOf(texts: readonly string[]): Trie {
  const root: Trie = { isEnd: false, next: new Map() };
  for (const text of texts) {
    let node = root;
    for (const character of text) {
      let next = node.next.get(character);
      if (next === undefined) {
        next = { isEnd: false, next: new Map() };
        node.next.set(character, next);
      }
      node = next;
    }
    node.isEnd = true;
  }
  return root;
}

function writeTrie(node: Trie): string {
  const characters = [...node.next.keys()].map((each) => writeCharacter(each.codePointAt(0) ?? 0));
  const options = [...node.next.entries()].map(
    ([character, next]) => writeCharacter(character.codePointAt(0) ?? 0) + writeTrie(next),
  );
  if (characters.length === 0) options.push("[\\s\\S]+");
  else options.push(`[^${characters.join("")}][\\s\\S]*`);
  const written = `(?:${options.join("|")})`;
  return node.isEnd ? written : `${written}?`;
}
