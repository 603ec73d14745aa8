/** Numbers for subschemas: what says the same has the same number, wherever it stands and however it is described. */

import { isJsonObject } from "../../../json.ts";
import { namedSchemas, plainKeywords } from "./draft.ts";

const descriptions = new Set(["title", "description", "$comment"]);

export class Contents {
  readonly #numbers = new Map<string, number>();
  readonly #known = new WeakMap<object, number>();

  /** @param value not changed afterwards, and nested as `checkSchemaSize` allows */
  numberOf(value: unknown): number {
    return this.#numberOf(value, false);
  }

  /** @param isNamed its keys are names */
  #numberOf(value: unknown, isNamed: boolean): number {
    if (typeof value !== "object" || value === null)
      return this.#numberOfText(JSON.stringify(value));
    let number = this.#known.get(value);
    if (number === undefined) {
      number = this.#numberOfText(this.#textOf(value, isNamed));
      this.#known.set(value, number);
    }
    return number;
  }

  #textOf(value: object, isNamed: boolean): string {
    if (!isJsonObject(value))
      return `[${(value as unknown[]).map((item) => this.#numberOf(item, false)).join()}]`;
    const parts: string[] = [];
    for (const [key, item] of Object.entries(value)) {
      if (!isNamed && typeof item === "string" && descriptions.has(key)) continue;
      const isPlain = !isNamed && plainKeywords.has(key);
      const inner = isPlain
        ? this.#numberOfText(JSON.stringify(item))
        : this.#numberOf(item, !isNamed && namedSchemas.has(key));
      parts.push(`${JSON.stringify(key)}:${inner}`);
    }
    return `{${parts.join()}}`;
  }

  #numberOfText(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(text, number);
    }
    return number;
  }
}
