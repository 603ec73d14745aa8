/**
 * What one rendering may cost. A template is a program from a file that somebody else made: without bounds, a few
 * loops or doublings in it stop the server for all.
 */

import {
  type Value,
  isArray,
  isMissing,
  isNamespace,
  isNumber,
  isObject,
  isString,
  strftime,
  textOf,
} from "./library.ts";

/**
 * Of llama.cpp's 70 templates the dearest takes 2,525 steps for one round with a tool. Some look back over all messages
 * for each: with 400 messages that is 1,994 steps a message, and a message has at least 4 values.
 */
const baseSteps = 50_000;
const stepsPerValue = 2000;
/** A template may look at a text character by character. */
const stepsPerCharacter = 20;
/** One of the 70 appends each message to all the text before it: with n messages, n / 2 times what they say. */
const baseCharacters = 16 * 2 ** 20;
const charactersPerCharacter = 1000;
/** Of one text. */
const baseLength = 16 * 2 ** 20;
const lengthPerCharacter = 10;
/** Of `indent` and of `tojson`, which take any number. */
const maxWidth = 1000;
/** A step reads 64 characters. */
const readBits = 6;
/** With the whole of a part that is searched for, 256 of its characters are compared as fast as one. */
const partBits = 8;

function setOf(names: string): ReadonlySet<string> {
  return new Set(names.split(" "));
}

/** Filters and methods that read what they are applied to as a whole, with all that it holds. */
const readers = setOf(
  "capitalize e escape indent join lower replace string title tojson trim unique upper wordcount",
);
/** Those that take no longer for a longer text. */
const quickWithTexts = setOf(
  "d default endswith first last removeprefix removesuffix safe startswith",
);
/** For a longer list. */
const quickWithLists = setOf("count d default first last length safe");
/** For a larger object. */
const quickWithObjects = setOf("count d default length safe");
/** Those to which a text is a list of its characters. */
const spreaders = setOf("batch list map max min reject reverse select slice sort sum unique");
/** Those that search a text for their first argument. */
const searchers = setOf("count find partition replace rfind rpartition rsplit split");

const wordStarts = /(?<!\S)\S/gu;
const lineEnds = /[\p{Zl}\p{Zp}]|(?!\t)\p{Cc}/gu;

/** A filter's or method's argument, by place or by name. */
export type ArgumentOf = (place: number, name: string) => Value | undefined;

/** The template asks for more than any template for chats takes. */
export class TemplateTooCostly extends TypeError {}

export class RenderBudget {
  #steps: number;
  #characters: number;
  readonly #longest: number;

  /** @param variables the template's inputs; more of them may cost more */
  constructor(variables: Record<string, unknown>) {
    const { values, characters } = sizeOf(variables);
    this.#steps = baseSteps + stepsPerValue * values + stepsPerCharacter * characters;
    this.#characters = baseCharacters + charactersPerCharacter * characters;
    this.#longest = baseLength + lengthPerCharacter * characters;
  }

  /** @throws TemplateTooCostly */
  step(count = 1): void {
    this.#steps -= count;
    if (!(this.#steps >= 0)) throw new TemplateTooCostly("it takes too many steps");
  }

  /** A text of so many characters is made. @throws as `step` */
  write(characters: number): void {
    this.#characters -= characters;
    if (!(this.#characters >= 0) || characters > this.#longest)
      throw new TemplateTooCostly("it writes too much text");
  }

  /** Has been made. @throws as `step` */
  made(value: Value): Value {
    if (isString(value)) this.write(value.value.length);
    else if (isArray(value)) this.step(value.value.length);
    else if (isNamespace(value)) this.step(value.value.size);
    return value;
  }

  /** Is about to be gone through, without what its items hold. @throws as `step` */
  skim(value: Value): void {
    if (isString(value)) this.step(value.value.length >> readBits);
    else if (isArray(value)) this.step(value.value.length);
    else if (isObject(value)) this.step(value.value.size);
  }

  /**
   * Is about to be read as a whole: values may stand in each other, and be more than memory shows.
   * @param width of the margin that each level adds to that of its line
   * @throws as `step`
   */
  walk(value: Value, width = 0, margin = 0): void {
    this.step(1 + (isString(value) ? value.value.length >> readBits : 0));
    this.write(margin);
    if (isArray(value)) for (const item of value.value) this.walk(item, width, margin + width);
    else if (isObject(value) || isNamespace(value))
      for (const [key, item] of value.value) {
        this.step(String(key).length >> readBits);
        this.walk(item, width, margin + width);
      }
  }

  /** A text is about to be searched for a part of it. @throws as `step` */
  search(text: string, part: string): void {
    this.step((text.length >> readBits) * (1 + (part.length >> partBits)));
  }

  /** What Python's `str` makes of a value. @throws as `step` */
  textOf(value: Value): string {
    if (!isString(value)) this.walk(value);
    const text = textOf(value);
    this.write(text.length);
    return text;
  }

  /**
   * Before a filter, or a method of a text, runs: it may read much, or make far more than it is given.
   * @param given its arguments, as values; for `format`, what may be put into the text
   * @throws as `step`
   */
  expand(name: string, operand: Value, given: readonly Value[], argument: ArgumentOf): void {
    for (const value of given) this.walk(value);
    const quickWithOthers = isArray(operand) ? quickWithLists : quickWithObjects;
    if (isString(operand) && spreaders.has(name)) this.step(operand.value.length);
    else if (readers.has(name)) this.walk(operand);
    else if (!(isString(operand) ? quickWithTexts : quickWithOthers).has(name)) this.skim(operand);
    const first = argument(0, name === "replace" ? "old" : "sep");
    const text = isString(operand) ? operand.value : null;
    if (text !== null && searchers.has(name) && first !== undefined)
      this.search(text, textOf(first));
    switch (name) {
      case "split":
      case "rsplit":
        if (text === null) return;
        if (first === undefined || isMissing(first)) return this.step(countOf(wordStarts, text));
        return this.step(placesOf(textOf(first), text));
      case "splitlines":
        if (text !== null) this.step(countOf(lineEnds, text));
        return;
      case "tojson":
        for (const separator of listed(argument(2, "separators"))) widthOf(name, separator);
        return this.walk(operand, widthOf(name, argument(1, "indent")));
      case "indent": {
        const width = widthOf(name, argument(0, "width")) || 4;
        return text === null ? undefined : this.write(text.length + width * placesOf("\n", text));
      }
      case "join": {
        const { value } = operand;
        const count = isString(operand) || isArray(operand) ? operand.value.length : 0;
        const size = isObject(operand) ? (value as ReadonlyMap<unknown, unknown>).size : count;
        return this.write(size * lengthOf(argument(0, "d")));
      }
      case "replace":
        return this.#replace(textOf(operand), first, argument(1, "new"));
      case "format": {
        const longest = given.reduce((most, value) => Math.max(most, lengthOf(value)), 0);
        if (text !== null) this.write(text.length + placesOf("{", text) * longest);
      }
    }
  }

  #replace(text: string, from: Value | undefined, to: Value | undefined): void {
    if (from === undefined) return;
    this.write(text.length + placesOf(textOf(from), text) * lengthOf(to));
  }
}

/** Of its text. */
function lengthOf(value: Value | undefined): number {
  return value === undefined ? 0 : textOf(value).length;
}

function listed(value: Value | undefined): readonly Value[] {
  return value !== undefined && isArray(value) ? value.value : [];
}

function widthOf(name: string, value: Value | undefined): number {
  if (value === undefined || isMissing(value)) return 0;
  const width = isNumber(value) ? value.value : lengthOf(value);
  if (width > maxWidth) throw new TypeError(`${name} takes a width of at most ${maxWidth}`);
  return Math.max(0, width);
}

/** One more than it occurs. */
function placesOf(part: string, text: string): number {
  let count = 1;
  const next = Math.max(1, part.length);
  for (let at = text.indexOf(part); at >= 0 && at < text.length; at = text.indexOf(part, at + next))
    count += 1;
  return count;
}

function countOf(characters: RegExp, text: string): number {
  let count = 0;
  for (characters.lastIndex = 0; characters.test(text);) count += 1;
  return count;
}

function sizeOf(root: unknown): { values: number; characters: number } {
  const size = { values: 0, characters: 0 };
  const add = (value: unknown): void => {
    size.values += 1;
    if (typeof value === "string") size.characters += value.length;
    else if (Array.isArray(value)) for (const item of value) add(item);
    else if (typeof value === "object" && value !== null)
      for (const item of Object.values(value)) add(item);
  };
  add(root);
  return size;
}

/** The template itself said no, with `raise_exception`. */
export class TemplateRefusal extends TypeError {}

/** Functions that every template may call. */
export function functionsWithin(budget: RenderBudget): Readonly<Record<string, unknown>> {
  return {
    raise_exception: (message: unknown): never => {
      throw new TemplateRefusal(typeof message === "string" ? message : "it gives no reason");
    },
    strftime_now: (format: unknown): string => {
      if (typeof format !== "string") throw new TypeError("strftime_now takes a text");
      budget.step(format.length);
      return strftime(format, new Date());
    },
    range: (first: unknown, last?: unknown, step: unknown = 1): number[] => {
      const [start, end] = last === undefined ? [0, first] : [first, last];
      if (!isInteger(start) || !isInteger(end) || !isInteger(step))
        throw new TypeError("range takes integers");
      const length = Math.max(0, Math.ceil((end - start) / step));
      budget.step(length);
      return Array.from({ length }, (_, index) => start + index * step);
    },
  };
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value);
}
