/** Arguments between markers, each where its value ends. */

import { type ParameterArguments, anyBlanks } from "./call-syntax.ts";
import {
  type Markup,
  type Rules,
  anything,
  escapeRegex,
  escapedSeparators,
  jsonValue,
  literal,
  objectsOf,
  regexTerminal,
} from "./lark.ts";
import type { JsonObject } from "./schema/types.ts";
import { isJsonObject } from "../json.ts";

/** From its key's text on, which stands behind `open`. */
interface Parameter {
  key: string;
  schema: JsonObject;
  isRequired: boolean;
}

export class ParameterWriter {
  readonly #style: ParameterArguments;
  readonly #definitions: unknown;
  readonly #markup: Markup;
  /** Text behind the arguments, in the call's body. */
  readonly #behind: string;
  readonly #rules: string[] = [];

  constructor(style: ParameterArguments, schema: JsonObject, behind: string, markup: Markup) {
    this.#style = style;
    this.#definitions = schema["$defs"];
    this.#behind = behind;
    this.#markup = markup;
  }

  /**
   * Arguments and what is behind them.
   * @param name of the rules, which begin with it
   */
  write(schema: JsonObject, name: string): Rules {
    const options = objectsOf(schema).map((object, option) =>
      this.#object(object, `${name}_${option}`),
    );
    return { expression: `(${options.join(" | ")})`, rules: this.#rules.join("") };
  }

  /** In their order, optional ones left out at will. */
  #object(object: JsonObject, name: string): string {
    const required = new Set(object["required"] as string[] | undefined);
    const parameters = Object.entries((object["properties"] ?? {}) as JsonObject)
      .filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]))
      .map(([key, schema]) => ({ key, schema, isRequired: required.has(key) }));
    const last = parameters.findLastIndex(({ isRequired }) => isRequired);
    parameters.forEach((parameter, index) => {
      const isLast = index === parameters.length - 1;
      const next = { choice: isLast ? null : `${name}_c${index + 1}`, mayEnd: index >= last };
      this.#parameter(parameter, `${name}_${index}`, next);
      const others = parameter.isRequired || isLast ? "" : ` | ${name}_c${index + 1}`;
      this.#rules.push(`${name}_c${index}: ${name}_${index}${others}\n`);
    });
    const choice = parameters.length === 0 ? null : `${name}_c0`;
    return this.#following({ choice, mayEnd: last < 0 });
  }

  /** Another parameter, or the end. */
  #following({ choice, mayEnd }: Following): string {
    const options = choice === null ? [] : [`${this.#markup.sequence(this.#style.open)} ${choice}`];
    if (mayEnd) options.push(this.#markup.sequence(this.#behind) || '""');
    return `(${options.join(" | ")})`;
  }

  #parameter({ key, schema }: Parameter, name: string, next: Following): void {
    const { middle, middleOfOthers = middle, end, after } = this.#style;
    const close = end.close.replace("$key", () => key);
    const closed = `${this.#markup.sequence(end.line + close + after)} ${this.#following(next)}`;
    const any = Object.keys(schema).length === 0 ? anything : schema;
    const options = (Array.isArray(any["anyOf"]) ? any["anyOf"] : [any]) as JsonObject[];
    const ways = new Map<string, string[]>();
    const add = (between: string, expression: string): void => {
      ways.set(between, [...(ways.get(between) ?? []), expression]);
    };
    const isString = ({ type }: JsonObject): boolean => type === "string";
    options.filter(isString).forEach((string, index) => {
      const text = rawText(string);
      if (Array.isArray(text)) add(middle, `(${text.map(literal).join(" | ")}) ${closed}`);
      else for (const way of this.#text(text, close, `${name}_${index}`, next)) add(middle, way);
    });
    const others = options.filter((option) => !isString(option));
    for (const [between, schemas] of groupByMiddle(others, middleOfOthers)) {
      const value = schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
      const defined =
        this.#definitions === undefined ? value : { ...value, $defs: this.#definitions };
      add(between, `${jsonValue(defined, escapedSeparators(this.#style))} ${closed}`);
    }
    const written = [...ways].map(
      ([between, expressions]) =>
        `${this.#markup.sequence(key + between)} (${expressions.join(" | ")})`,
    );
    this.#rules.push(`${name}: ${written.join(" | ")}\n`);
  }

  /** The ways of a text to end, see `ValueEnd`, each with what follows it. */
  #text(text: RawText, close: string, name: string, next: Following): string[] {
    const { end, after, open } = this.#style;
    const terminal = name.toUpperCase();
    const isByLine = end.line !== "" && this.#markup.isText(close + end.followers.join(""));
    if (!isByLine) {
      const until = this.#markup.until(`${name}_u`, terminal, end.line + close);
      this.#rules.push(`${terminal}: ${text.terminal}\n${until.rule}`);
      return [`${until.expression} ${this.#markup.sequence(after)} ${this.#following(next)}`];
    }
    const ways = [`${name}_u ${this.#markup.sequence(after)} ${this.#following(next)}`];
    // The line break before the value is no part of it: an empty one may close on the next line.
    const line = `${terminal} ${literal(end.line)}`;
    this.#rules.push(
      `${name}_u[lazy]: ${text.mayBeEmpty ? `(${line})?` : line} ${literal(close)}\n`,
    );
    const inLine = escapeRegex(close) + anyBlanks;
    const refused: string[] = [];
    for (const [index, follower] of [...new Set(end.followers)].entries()) {
      const way =
        follower === open
          ? next.choice
          : next.mayEnd && this.#behind.startsWith(follower)
            ? this.#markup.sequence(this.#behind.slice(follower.length))
            : null;
      if (way === null) refused.push(escapeRegex(follower));
      else {
        ways.push(`${name}_f${index} ${way}`);
        const ended = `${terminal} /${inLine}${escapeRegex(follower)}/`;
        this.#rules.push(`${name}_f${index}[lazy]: ${ended}\n`);
      }
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

interface RawText {
  terminal: string;
  mayBeEmpty: boolean;
}

/** A string without quotes: its texts, or a terminal. */
function rawText(schema: JsonObject): string[] | RawText {
  if (Array.isArray(schema["enum"])) return schema["enum"] as string[];
  const max = schema["maxLength"] === undefined ? "" : Number(schema["maxLength"]);
  const min = Number(schema["minLength"] ?? 0);
  const { pattern } = schema;
  if (typeof pattern === "string")
    return { terminal: regexTerminal(pattern.slice(1, -1)), mayBeEmpty: false };
  return { terminal: `/(?s:.{${min},${max}})/`, mayBeEmpty: min === 0 };
}
