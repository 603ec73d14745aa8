/**
 * Values as JSON. The mask engine writes them by their schema, but for arrays without repeats and numbers that are no integers, which
 * it does not know: what leads to one is written in rules.
 */

import {
  type JsonStyle,
  type SequenceItem,
  definitionOf,
  distinctRules,
  listRules,
  literal,
  plainJson,
  regexTerminal,
  sequenceRules,
} from "./lark.ts";
import { writeAllBut } from "./schema/regex/write.ts";
import type { JsonObject } from "./schema/types.ts";
import { type Leads, distinctItems, leadingTo, mentionsRuled } from "./schema/write/distinct.ts";
import { markerItem } from "./schema/write/unique.ts";
import { fractionsOf } from "./schema/write/fractions.ts";

/** @param schema as `compileSchema` writes it */
export function jsonValue(schema: JsonObject, style: JsonStyle): string {
  if (!mentionsRuled(schema)) return plainJson(schema, style);
  return `%lark {\n${new RuledJson(schema, style).rules}}`;
}

class RuledJson {
  readonly rules: string;
  readonly #style: JsonStyle;
  readonly #definitions: Record<string, JsonObject>;
  readonly #leads: Leads;
  readonly #rules: string[] = [];
  /** Of definitions that lead to an array without repeats, by their references. */
  readonly #named = new Map<string, string>();
  #count = 0;

  constructor({ $defs = {}, ...schema }: JsonObject, style: JsonStyle) {
    this.#style = style;
    this.#definitions = $defs as Record<string, JsonObject>;
    this.#leads = leadingTo(this.#definitions);
    const start = this.#value(schema);
    this.rules = `start: ${start}\n${this.#rules.join("")}`;
  }

  #next(): string {
    return `v${this.#count++}`;
  }

  get #separator(): string {
    return regexTerminal(this.#style.itemSeparator);
  }

  #value(schema: JsonObject): string {
    if (!this.#leads(schema)) return this.#plain(schema);
    if (typeof schema["$ref"] === "string") return this.#reference(schema["$ref"]);
    if (Array.isArray(schema["anyOf"])) return this.#union(schema["anyOf"] as JsonObject[]);
    const items = distinctItems(schema);
    if (items !== null) return this.#distinct(items, schema);
    const fractions = fractionsOf(schema);
    if (fractions !== null) return regexTerminal(fractions);
    return schema["type"] === "array" ? this.#array(schema) : this.#object(schema);
  }

  /** With the definitions that it needs. */
  #plain(schema: JsonObject): string {
    const needed = new Map<string, JsonObject>();
    const collect = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      const { $ref } = value as JsonObject;
      if (typeof $ref === "string" && !needed.has($ref)) {
        const definition = definitionOf($ref, this.#definitions);
        needed.set($ref, definition);
        collect(definition);
      }
      for (const item of Object.values(value)) collect(item);
    };
    collect(schema);
    if (needed.size === 0) return plainJson(schema, this.#style);
    const $defs = Object.fromEntries(
      Object.entries(this.#definitions).filter(([, definition]) =>
        [...needed.values()].includes(definition),
      ),
    );
    return plainJson({ ...schema, $defs }, this.#style);
  }

  #reference(reference: string): string {
    let rule = this.#named.get(reference);
    if (rule === undefined) {
      rule = this.#next();
      this.#named.set(reference, rule);
      const value = this.#value(definitionOf(reference, this.#definitions));
      this.#rules.push(`${rule}: ${value}\n`);
    }
    return rule;
  }

  /** What needs no rules stays together: scalars are one expression to the mask engine. */
  #union(options: readonly JsonObject[]): string {
    const plain = options.filter((option) => !this.#leads(option));
    const ways = options.filter(this.#leads).map((option) => this.#value(option));
    if (plain.length > 0) ways.push(this.#plain(plain.length === 1 ? plain[0]! : { anyOf: plain }));
    return `(${ways.join(" | ")})`;
  }

  #distinct(items: readonly unknown[], { minItems, maxItems }: JsonObject): string {
    const rule = this.#next();
    const written = items.map((item) => literal(JSON.stringify(item)));
    const limits = { min: Number(minItems), max: Number(maxItems) };
    this.#rules.push(distinctRules(written, this.#separator, rule, limits));
    return `"[" ${rule} "]"`;
  }

  #array(schema: JsonObject): string {
    const { prefixItems = [], items, minItems = 0, maxItems = Infinity } = schema;
    const name = this.#next();
    const places = (prefixItems as JsonObject[]).map((item) => this.#value(item));
    if (items !== false) this.#rules.push(`${name}: ${this.#value(items as JsonObject)}\n`);
    const list = listRules(
      { places, others: items === false ? null : name },
      { min: Number(minItems), max: Number(maxItems) },
      this.#separator,
      { name, rules: this.#rules },
    );
    const marker = markerItem(schema);
    return `"[" ${marker === null ? list : `(${list} | ${this.#value(marker)})`} "]"`;
  }

  #object({ properties = {}, required = [], additionalProperties }: JsonObject): string {
    const named = Object.entries(properties as Record<string, JsonObject | boolean>);
    const needed = new Set(required as string[]);
    const items: SequenceItem[] = named.flatMap(([name, value]) => {
      if (typeof value === "boolean") return [];
      const rule = this.#next();
      this.#rules.push(
        `${rule}: ${this.#key(literal(JSON.stringify(name)))} ${this.#value(value)}\n`,
      );
      return [{ expression: rule, required: needed.has(name) }];
    });
    if (additionalProperties !== false) {
      const rule = this.#next();
      const names = named.map(([name]) => name);
      const pattern = names.length === 0 ? {} : { pattern: `^(?:${writeAllBut(names)})$` };
      const key = this.#key(plainJson({ type: "string", ...pattern }, this.#style));
      this.#rules.push(`${rule}: ${key} ${this.#value(additionalProperties as JsonObject)}\n`);
      const expression = `${rule} (${this.#separator} ${rule})*`;
      items.push({ expression, required: false });
    }
    return `"{" ${sequenceRules(items, this.#separator, this.#next(), this.#rules)} "}"`;
  }

  #key(name: string): string {
    return `${name} ${regexTerminal(this.#style.keySeparator)}`;
  }
}
