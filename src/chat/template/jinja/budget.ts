/**
 * What one rendering may cost. A template is a program from a file that somebody else made: without bounds, a few
 * loops or doublings in it stop the server for all.
 */

import { type Value, isArray, isObject, isString, textOf } from "./library.ts";

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

/** Filters and methods that read what they are applied to as a whole. */
const readers: ReadonlySet<string> = new Set(
  "capitalize e escape indent join lower replace string title tojson trim unique upper wordcount".split(
    " ",
  ),
);

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
    return value;
  }

  /** Is about to be read as a whole: values may stand in each other, and be more than memory shows. @throws as `step` */
  walk(value: Value): void {
    this.step();
    if (isArray(value)) for (const item of value.value) this.walk(item);
    else if (isObject(value)) for (const item of value.value.values()) this.walk(item);
  }

  /** What Python's `str` makes of a value. @throws as `step` */
  textOf(value: Value): string {
    if (!isString(value)) this.walk(value);
    const text = textOf(value);
    this.write(text.length);
    return text;
  }

  /**
   * Before a filter or method runs whose result may be far larger than what it is given.
   * @param argumentsOf evaluates its arguments
   * @throws as `step`
   */
  expand(name: string, operand: Value, argumentsOf: () => readonly Value[]): void {
    if (readers.has(name)) this.walk(operand);
    if (name !== "tojson" && name !== "indent" && name !== "replace" && name !== "join") return;
    const args = argumentsOf();
    if (name === "join") return this.#join(operand, args[0]);
    const [width = 4] = args.flatMap(({ value }) =>
      typeof value === "number" ? [value] : typeof value === "string" ? [value.length] : [],
    );
    if (name !== "replace" && width > maxWidth)
      throw new TypeError(`${name} takes a width of at most ${maxWidth}`);
    if (!isString(operand)) return;
    const text = operand.value;
    if (name === "indent") this.write(text.length + width * placesOf("\n", text));
    if (name !== "replace") return;
    const [from = "", to = ""] = args.map(({ value }) => (typeof value === "string" ? value : ""));
    this.write(text.length + placesOf(from, text) * to.length);
  }

  /** Of a list by a text, or of a text by a list. */
  #join(operand: Value, argument: Value | undefined): void {
    const [count, length] = [operand, argument].map((value) =>
      value !== undefined && (isString(value) || isArray(value)) ? value.value.length : 0,
    ) as [number, number];
    if (argument !== undefined) this.walk(argument);
    this.write(count * length);
  }
}

function placesOf(part: string, text: string): number {
  return text.split(part).length;
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
