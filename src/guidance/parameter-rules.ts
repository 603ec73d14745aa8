/** Arguments between markers, each where its value ends. */

import type { ArgumentStyle, ParameterArguments } from "./call-syntax.ts";
import {
  type Markup,
  escapeRegex,
  escapedSeparators,
  literal,
  objectsOf,
  optionsOf,
  type TextTerminal,
  textTerminal,
} from "./lark.ts";
import { jsonValue } from "./json-values.ts";
import { bareName, freeProperties, nameTerminal } from "./free-properties.ts";
import type { JsonObject } from "./schema/types.ts";
import { anyBlanks, isJsonObject } from "../json.ts";

const cdata = ["<![CDATA[", "]]>"] as const;

/** Names that no marker of these forms begins in. */
const freeName = bareName('<>"');

/**
 * What ends a text that stands on lines of its own, as a comment: the search for a short end tries the grammar's quoted
 * texts, the first ones most, and the rules have it in two pieces.
 */
export function textEndComment(style: ArgumentStyle): string {
  if (style.style !== "parameters" || style.end.line === "") return "";
  const { line, close } = style.end;
  return close.includes("$key") ? "" : `// ${literal(line + close)}\n`;
}

interface Parameter {
  /** Of free names: their terminal. */
  key: string;
  isFree: boolean;
  schema: JsonObject;
  /** Of the object's schema. */
  definitions: unknown;
}

/** Of all calls of a grammar. */
export class ParameterWriter {
  readonly #style: ParameterArguments;
  readonly #markup: Markup;
  /** Text behind the arguments, in each call's body. */
  readonly #behind: string;
  readonly #rules: string[] = [];
  /** Texts with the same ends share their rules: by the terminal and what may follow. */
  readonly #texts = new Map<string, TextWay[]>();

  constructor(style: ParameterArguments, behind: string, markup: Markup) {
    this.#style = style;
    this.#behind = behind;
    this.#markup = markup;
  }

  /** All that were needed so far. */
  get rules(): string {
    return this.#rules.join("");
  }

  /**
   * Arguments and what is behind them.
   * @param name of the rules, which begin with it
   */
  write(schema: JsonObject, name: string): string {
    const definitions = schema["$defs"];
    const options = objectsOf(schema).map((object, option) =>
      this.#object(object, `${name}_${option}`, definitions),
    );
    return `(${options.join(" | ")})`;
  }

  /** In their order, optional ones left out at will. Those of free names come after the others. */
  #object(object: JsonObject, name: string, definitions: unknown): string {
    const required = new Set(object["required"] as string[] | undefined);
    const parameters = Object.entries((object["properties"] ?? {}) as JsonObject)
      .filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]))
      .map(([key, schema]) => ({ key, schema, isRequired: required.has(key) }));
    const isJson = this.#style.end.close.includes("$key") && freeProperties(object).length > 0;
    const free = isJson ? null : this.#free(object, `${name}_f`, definitions);
    const last = parameters.findLastIndex(({ isRequired }) => isRequired);
    parameters.forEach(({ key, schema, isRequired }, index) => {
      const isLast = index === parameters.length - 1;
      const choice = isLast ? free : `${name}_c${index + 1}`;
      const next = { choice, mayEnd: index >= last, rule: `${name}_a${index}` };
      this.#rules.push(`${next.rule}: ${this.#following(choice, next.mayEnd)}\n`);
      this.#parameter({ key, isFree: false, schema, definitions }, `${name}_${index}`, next);
      const others = isRequired || choice === null ? "" : ` | ${choice}`;
      this.#rules.push(`${name}_c${index}: ${name}_${index}${others}\n`);
    });
    const written = this.#following(parameters.length === 0 ? free : `${name}_c0`, last < 0);
    if (!isJson) return written;
    // No grammar repeats a free name where its value ends. The parser takes one object of all arguments, too.
    return `(${written} | ${this.#json(object, definitions)} ${this.#end})`;
  }

  /** Any number of parameters of free names. @returns the rule, `name`; null: there are none */
  #free(object: JsonObject, name: string, definitions: unknown): string | null {
    const properties = freeProperties(object, freeName);
    if (properties.length === 0) return null;
    const next = { choice: name, mayEnd: true, rule: `${name}_a` };
    this.#rules.push(`${next.rule}: ${this.#following(name, true)}\n`);
    const rules = properties.map(({ name: names, schema }, index) => {
      const rule = `${name}${index}`;
      const key = `${rule}_n`.toUpperCase();
      this.#rules.push(`${key}: ${nameTerminal(names, freeName)}\n`);
      this.#parameter({ key, isFree: true, schema, definitions }, rule, next);
      return rule;
    });
    this.#rules.push(`${name}: ${rules.join(" | ")}\n`);
    return name;
  }

  #json(schema: JsonObject, definitions: unknown): string {
    const defined = definitions === undefined ? schema : { ...schema, $defs: definitions };
    return jsonValue(defined, escapedSeparators(this.#style));
  }

  get #end(): string {
    return this.#markup.sequence(this.#behind) || '""';
  }

  /** Another parameter, or the end. */
  #following(choice: string | null, mayEnd: boolean): string {
    const options = choice === null ? [] : [`${this.#markup.sequence(this.#style.open)} ${choice}`];
    if (mayEnd) options.push(this.#end);
    return `(${options.join(" | ")})`;
  }

  #parameter(parameter: Parameter, name: string, next: Following): void {
    const { key, isFree, schema, definitions } = parameter;
    const { middle, middleOfOthers = middle, end, after } = this.#style;
    const close = end.close.replace("$key", () => key);
    const closed = `${this.#markup.sequence(end.line + close + after)} ${next.rule}`;
    const options = optionsOf(schema, definitions);
    const ways = new Map<string, string[]>();
    const add = (between: string, expression: string): void => {
      ways.set(between, [...(ways.get(between) ?? []), expression]);
    };
    const isString = ({ type }: JsonObject): boolean => type === "string";
    for (const string of options.filter(isString)) {
      const { enum: texts } = string as { enum?: string[] };
      if (texts !== undefined) add(middle, `(${texts.map(literal).join(" | ")}) ${closed}`);
      else for (const way of this.#text(textTerminal(string), close, next)) add(middle, way);
    }
    const others = options.filter((option) => !isString(option));
    for (const [between, schemas] of groupByMiddle(others, middleOfOthers)) {
      const value = schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
      add(between, `${this.#json(value, definitions)} ${closed}`);
    }
    const written = [...ways].map(([between, expressions]) => {
      const opened = isFree
        ? `${key} ${this.#markup.sequence(between)}`
        : this.#markup.sequence(key + between);
      return `${opened} (${expressions.join(" | ")})`;
    });
    this.#rules.push(`${name}: ${written.join(" | ")}\n`);
  }

  /** The ways of a text to end, each with what follows it. */
  #text(text: TextTerminal, close: string, next: Following): string[] {
    const mayGoOn = next.choice !== null;
    const key = JSON.stringify([text, close, mayGoOn, next.mayEnd]);
    const ways = this.#texts.get(key) ?? this.#newText(text, close, mayGoOn, next.mayEnd);
    this.#texts.set(key, ways);
    const { open, after } = this.#style;
    return ways.map(({ expression, follower }) => {
      if (follower === null) return `${expression} ${this.#markup.sequence(after)} ${next.rule}`;
      if (follower === open) return `${expression} ${next.choice}`;
      return `${expression} ${this.#markup.sequence(this.#behind.slice(follower.length))}`;
    });
  }

  #newCdata(text: TextTerminal, close: string, name: string): TextWay {
    const [open, end] = cdata;
    const terminal = `${name}_c`.toUpperCase();
    this.#rules.push(`${terminal}: ${text.terminal} & ~/(?s:.*${escapeRegex(end)}.*)/\n`);
    this.#rules.push(`${name}_c[lazy]: ${literal(open)} ${terminal} ${literal(end + close)}\n`);
    return { expression: `${name}_c`, follower: null };
  }

  /** See `ValueEnd`. */
  #newText(text: TextTerminal, close: string, mayGoOn: boolean, mayEnd: boolean): TextWay[] {
    const { end, open } = this.#style;
    const name = `text_${this.#texts.size}`;
    const terminal = name.toUpperCase();
    const isByLine = end.line !== "" && this.#markup.isText(close + end.followers.join(""));
    if (!isByLine) {
      // No text has a token in it: the line break before one is left to the parser.
      const line = this.#markup.isText(close) ? end.line : "";
      const until = this.#markup.until(`${name}_u`, terminal, line + close);
      const ways: TextWay[] = [{ expression: until.expression, follower: null }];
      if (this.#style.hasCdata) ways.push(this.#newCdata(text, close, name));
      const others = this.#style.hasCdata ? ` & ~/(?s:${escapeRegex(cdata[0])}.*)/` : "";
      this.#rules.push(`${terminal}: ${text.terminal}${others}\n${until.rule}`);
      return ways;
    }
    const ways: TextWay[] = [{ expression: `${name}_u`, follower: null }];
    // The line break before the value is no part of it: an empty one may close on the next line.
    const line = `${terminal} ${literal(end.line)}`;
    const lines = text.mayBeEmpty ? `(${line})?` : line;
    this.#rules.push(`${name}_u[lazy]: ${lines} ${literal(close)}\n`);
    const inLine = escapeRegex(close) + anyBlanks;
    const refused: string[] = [];
    for (const follower of new Set(end.followers)) {
      const isTaken = follower === open ? mayGoOn : mayEnd && this.#behind.startsWith(follower);
      if (!isTaken) {
        refused.push(escapeRegex(follower));
        continue;
      }
      const expression = `${name}_f${ways.length}`;
      ways.push({ expression, follower });
      const ended = `${terminal} /${inLine}${escapeRegex(follower)}/`;
      this.#rules.push(`${expression}[lazy]: ${ended}\n`);
    }
    const texts = text.mayBeEmpty ? [] : [`${escapeRegex(close)}.*`];
    if (refused.length > 0) texts.push(`.*${inLine}(${refused.join("|")}).*`);
    const others = texts.length === 0 ? "" : ` & ~/(?s:${texts.join("|")})/`;
    this.#rules.push(`${terminal}: ${text.terminal}${others}\n`);
    return ways;
  }
}

/** What may follow a parameter. */
interface Following {
  /** The rule of the next ones. */
  choice: string | null;
  mayEnd: boolean;
  /** Of either, behind the parameter's own text. */
  rule: string;
}

/** A text up to its end. */
interface TextWay {
  expression: string;
  /** What its end has taken in of what follows; null: nothing. */
  follower: string | null;
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
