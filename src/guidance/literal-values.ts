/** Values as Python literals, or as objects with bare keys and marked strings. */

import type { BareKeyArguments, PythonArguments } from "./call-syntax.ts";
import {
  anything,
  definitionOf,
  distinctRules,
  listRules,
  literal,
  type Markup,
  objectsOf,
  type Rules,
  type SequenceItem,
  sequenceRules,
  textTerminal,
} from "./lark.ts";
import { jsonValue } from "./json-values.ts";
import { isJsonObject } from "../json.ts";
import { type FreeName, bareName, freeProperties, nameTerminal } from "./free-properties.ts";
import type { JsonObject } from "./schema/types.ts";
import { distinctItems } from "./schema/write/distinct.ts";

type Style = PythonArguments | BareKeyArguments;

const separators = { itemSeparator: ", ", keySeparator: ": " };

/** How the name of a property and what stands behind it are written. */
interface KeyStyle {
  listed(name: string): string;
  /** Names that may be free, and what stands before them, as regular expressions; what stands behind them. */
  open: string;
  free: string;
  close: string;
  /** An expression of all names. Default: what `free` matches. */
  any?: string;
}

const keywordKeys: KeyStyle = {
  listed: (name) => literal(`${name}=`),
  open: "",
  free: bareName("<>\"'=,(){}\\[\\]"),
  close: "=",
};
/** A name with an escape in it is written where any is taken, or one that is listed. */
const pythonKeys: KeyStyle = {
  listed: (name) => literal(`${JSON.stringify(name)}: `),
  open: '"',
  free: '[^"\\\\\\x00-\\x1f]*',
  close: '": ',
  any: jsonValue({ type: "string" }, separators),
};
const bareKeys: KeyStyle = {
  listed: (name) => literal(`${name}:`),
  open: "",
  free: bareName("<>\"':,{}\\[\\]"),
  close: ":",
};

export class LiteralWriter {
  readonly #style: Style;
  readonly #schema: JsonObject;
  readonly #name: string;
  readonly #markup: Markup;
  readonly #rules: string[] = [];
  readonly #definitions = new Map<string, string>();
  #anything: string | null = null;
  #count = 0;

  constructor(style: Style, schema: JsonObject, name: string, markup: Markup) {
    this.#style = style;
    this.#schema = schema;
    this.#name = name;
    this.#markup = markup;
  }

  /** `key=value, key=value` */
  keywordArguments(): Rules {
    const options = objectsOf(this.#schema).map((object) =>
      this.#properties(object, keywordKeys, literal(", ")),
    );
    return { expression: `(${options.join(" | ")})`, rules: this.#rules.join("") };
  }

  object(): Rules {
    const options = objectsOf(this.#schema).map((object) => this.#object(object));
    return { expression: `(${options.join(" | ")})`, rules: this.#rules.join("") };
  }

  #next(): string {
    return `${this.#name}_v${this.#count++}`;
  }

  /** Listed ones in their order; those of free names come after them. */
  #properties(object: JsonObject, keys: KeyStyle, separator: string): string {
    const required = new Set(object["required"] as string[] | undefined);
    const items: SequenceItem[] = [];
    for (const [name, value] of Object.entries((object["properties"] ?? {}) as JsonObject)) {
      if (!isJsonObject(value)) continue;
      const rule = this.#next();
      this.#rules.push(`${rule}: ${keys.listed(name)} ${this.#value(value)}\n`);
      items.push({ expression: rule, required: required.has(name) });
    }
    const free = freeProperties(object, keys.free);
    if (free.length > 0) {
      const rule = this.#next();
      const ways = free.map(
        ({ name, schema }) => `${this.#key(name, keys)} ${this.#value(schema)}`,
      );
      this.#rules.push(`${rule}: ${ways.join(" | ")}\n`);
      items.push({ expression: `${rule} (${separator} ${rule})*`, required: false });
    }
    return `(${sequenceRules(items, separator, this.#next(), this.#rules)})`;
  }

  #key(name: FreeName, { open, free, close, any }: KeyStyle): string {
    const isAny = name.pattern === null && name.excluded.length === 0;
    if (isAny && any !== undefined) return `${any} ${literal(close.slice(open.length))}`;
    const terminal = this.#next().toUpperCase();
    this.#rules.push(`${terminal}: ${nameTerminal(name, free, open)}\n`);
    return `${terminal} ${literal(close)}`;
  }

  #object(object: JsonObject): string {
    const isPython = this.#style.style === "python";
    const keys = isPython ? pythonKeys : bareKeys;
    return `"{" ${this.#properties(object, keys, literal(isPython ? ", " : ","))} "}"`;
  }

  #value(schema: JsonObject): string {
    if (Object.keys(schema).length === 0) return this.#anyValue();
    if (typeof schema["$ref"] === "string") return this.#reference(schema["$ref"]);
    if (Array.isArray(schema["anyOf"]))
      return `(${(schema["anyOf"] as JsonObject[]).map((option) => this.#value(option)).join(" | ")})`;
    if (Array.isArray(schema["enum"]))
      return `(${schema["enum"].map((value: unknown) => this.#constant(value)).join(" | ")})`;
    if ("const" in schema) return this.#constant(schema["const"]);
    switch (schema["type"]) {
      case "boolean":
        return `(${this.#constant(true)} | ${this.#constant(false)})`;
      case "null":
        return this.#constant(null);
      case "string":
        return this.#string(schema);
      case "array":
        return this.#array(schema);
      case "object":
        return this.#object(schema);
      default:
        return jsonValue(schema, separators);
    }
  }

  #anyValue(): string {
    if (this.#anything === null) {
      this.#anything = this.#next();
      this.#rules.push(`${this.#anything}: ${this.#value(anything)}\n`);
    }
    return this.#anything;
  }

  #reference(reference: string): string {
    let rule = this.#definitions.get(reference);
    if (rule === undefined) {
      rule = this.#next();
      this.#definitions.set(reference, rule);
      const definition = definitionOf(reference, this.#schema["$defs"]);
      this.#rules.push(`${rule}: ${this.#value(definition)}\n`);
    }
    return rule;
  }

  #constant(value: unknown): string {
    const style = this.#style;
    if (typeof value === "string")
      return style.style === "python"
        ? `(${literal(JSON.stringify(value))} | ${literal(`'${quoted(value)}'`)})`
        : this.#markup.sequence(style.stringMark + value + style.stringMark);
    const isPython = style.style === "python" && style.words !== "json";
    if (!isPython || typeof value === "number") return literal(JSON.stringify(value));
    return literal(value === null ? "None" : value === true ? "True" : "False");
  }

  #string(schema: JsonObject): string {
    if (this.#style.style === "python") {
      const json = jsonValue(schema, separators);
      const isCounted = !["pattern", "format", "allOf"].some((keyword) => keyword in schema);
      return isCounted ? `(${json} | ${quotedString(schema)})` : json;
    }
    const { stringMark } = this.#style;
    const rule = this.#next();
    const terminal = rule.toUpperCase();
    const until = this.#markup.until(`${rule}_u`, terminal, stringMark);
    this.#rules.push(`${terminal}: ${textTerminal(schema).terminal}\n${until.rule}`);
    return `${this.#markup.sequence(stringMark)} ${until.expression}`;
  }

  #array(schema: JsonObject): string {
    const separator = literal(this.#style.style === "python" ? ", " : ",");
    const distinct = distinctItems(schema);
    if (distinct !== null) {
      const list = this.#next();
      const items = distinct.map((item) => this.#constant(item));
      const limits = { min: Number(schema["minItems"]), max: Number(schema["maxItems"]) };
      this.#rules.push(distinctRules(items, separator, list, limits));
      return `"[" ${list} "]"`;
    }
    const { items, prefixItems = [], minItems = 0, maxItems = Infinity } = schema;
    const name = this.#next();
    const places = (prefixItems as JsonObject[]).map((item) => this.#value(item));
    const others = isJsonObject(items) ? name : null;
    if (isJsonObject(items)) this.#rules.push(`${name}: ${this.#value(items)}\n`);
    const list = listRules(
      { places, others },
      { min: Number(minItems), max: Number(maxItems) },
      separator,
      { name, rules: this.#rules },
    );
    return `"[" ${list} "]"`;
  }
}

/** A text in Python's single quotes. */
function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
}

/** Any string in them. */
function quotedString({ minLength = 0, maxLength = "" }: JsonObject): string {
  const character = `([^'\\\\\\x00-\\x1f]|\\\\['"\\\\nrt])`;
  return `/'${character}{${Number(minLength)},${String(maxLength)}}'/`;
}
