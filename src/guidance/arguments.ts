/** A call's arguments in the style of a format, as Lark. */

import type { ArgumentStyle, ParameterArguments } from "./call-syntax.ts";
import {
  type Markup,
  type Rules,
  escapeRegex,
  jsonValue,
  literal,
  objectsOf,
  regexTerminal,
  sequenceRules,
} from "./lark.ts";
import { LiteralWriter } from "./literal-values.ts";
import { isJsonObject } from "../json.ts";
import type { JsonObject } from "./schema/types.ts";

/**
 * @param schema of an object, as `compileSchema` writes it
 * @param name of the rules, which begin with it
 */
export function argumentRules(
  style: ArgumentStyle,
  schema: JsonObject,
  name: string,
  markup: Markup,
): Rules {
  switch (style.style) {
    case "json":
      return { expression: jsonValue(schema, escaped(style)), rules: "" };
    case "parameters":
      return parameterRules(style, schema, name, markup);
    case "python":
      return new LiteralWriter("python", schema, name, markup).keywordArguments();
    case "bare-keys":
      return new LiteralWriter(style, schema, name, markup).object();
  }
}

/** The mask engine reads separators as regular expressions; a format's are texts. */
function escaped<T extends { itemSeparator: string; keySeparator: string }>(style: T): T {
  const itemSeparator = escapeRegex(style.itemSeparator);
  return { ...style, itemSeparator, keySeparator: escapeRegex(style.keySeparator) };
}

function parameterRules(
  style: ParameterArguments,
  schema: JsonObject,
  name: string,
  markup: Markup,
): Rules {
  const definitions = schema["$defs"];
  const rules: string[] = [];
  const options = objectsOf(schema).map((object, option) => {
    const properties = Object.entries((object["properties"] ?? {}) as JsonObject);
    const required = new Set(object["required"] as string[] | undefined);
    const items = properties
      .filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]))
      .map(([key, value], index) => {
        const rule = `${name}_${option}_${index}`;
        const written = parameter(key, value, { definitions, style, rule, markup });
        rules.push(`${rule}: ${written.expression}\n${written.rules}`);
        return { expression: rule, required: required.has(key) };
      });
    return sequenceRules(items, markup.sequence(style.separator), `${name}_${option}_s`, rules);
  });
  return { expression: `(${options.join(" | ")})`, rules: rules.join("") };
}

interface ParameterPlace {
  definitions: unknown;
  style: ParameterArguments;
  rule: string;
  markup: Markup;
}

/** From the opening marker to the closing one. */
function parameter(
  key: string,
  schema: JsonObject,
  { definitions, style, rule, markup }: ParameterPlace,
): Rules {
  const closing = style.close.replace("$key", () => key);
  const close = markup.sequence(closing);
  const options = (Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema]) as JsonObject[];
  const strings = options.filter(({ type }) => type === "string");
  const others = options.filter(({ type }) => type !== "string");
  const rules: string[] = [];
  const texts = strings.map((string, index) => {
    const text = rawText(string);
    if (Array.isArray(text)) return `(${text.map(literal).join(" | ")}) ${close}`;
    const terminal = `${rule}_t${index}`.toUpperCase();
    const until = markup.until(`${rule}_u${index}`, terminal, closing);
    rules.push(`${terminal}: ${text}\n${until.rule}`);
    return until.expression;
  });
  const { open, middle, middleOfOthers = middle } = style;
  const ways = new Map<string, string[]>();
  const add = (between: string, expression: string): void => {
    ways.set(between, [...(ways.get(between) ?? []), expression]);
  };
  for (const text of texts) add(middle, text);
  for (const [between, schemas] of groupByMiddle(others, middleOfOthers)) {
    const value = schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
    const defined = definitions === undefined ? value : { ...value, $defs: definitions };
    add(between, `${jsonValue(defined, escaped(style))} ${close}`);
  }
  const written = [...ways].map(
    ([between, expressions]) =>
      `${markup.sequence(open + key + between)} (${expressions.join(" | ")})`,
  );
  return { expression: written.join(" | "), rules: rules.join("") };
}

/** What stands before a value that is no string depends on its type, or does not. */
function groupByMiddle(
  schemas: readonly JsonObject[],
  middle: string | Readonly<Record<string, string>>,
): Map<string, JsonObject[]> {
  const groups = new Map<string, JsonObject[]>();
  for (const schema of schemas) {
    const between = typeof middle === "string" ? middle : middleOfType(schema, middle);
    groups.set(between, [...(groups.get(between) ?? []), schema]);
  }
  return groups;
}

function middleOfType(schema: JsonObject, middles: Readonly<Record<string, string>>): string {
  const type = schema["type"] === "integer" ? "number" : String(schema["type"]);
  return middles[type] ?? Object.values(middles)[0] ?? "";
}

/** A string without quotes: its texts, or a terminal. */
function rawText(schema: JsonObject): string[] | string {
  if (Array.isArray(schema["enum"])) return schema["enum"] as string[];
  const max = schema["maxLength"] === undefined ? "" : Number(schema["maxLength"]);
  const { pattern } = schema;
  if (typeof pattern === "string") return regexTerminal(pattern.slice(1, -1));
  return `/(?s:.{${Number(schema["minLength"] ?? 0)},${max}})/`;
}
