/** A parsed Jinja template, rendered by the rules of Python's Jinja. */

import { TemplateInterpreter } from "./interpreter.ts";
import { type Node, Environment, parse, textOf, tokenize } from "./library.ts";

/** The template itself said no, with `raise_exception`. */
export class TemplateRefusal extends TypeError {}

export class JinjaTemplate {
  readonly #program: Node;

  /** @throws SyntaxError | Error of the parser */
  constructor(source: string) {
    this.#program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
  }

  /** @throws TemplateRefusal, or an error that names what the template asks for and is missing */
  render(variables: Record<string, unknown>): string {
    const environment = new Environment();
    const globals = { true: true, True: true, false: false, False: false, none: null, None: null };
    for (const [name, value] of Object.entries({ ...variables, ...globals, ...functions })) {
      // The language's own names cannot be given away.
      if (value !== undefined && name !== "namespace") environment.set(name, value);
    }
    return textOf(new TemplateInterpreter(environment).run(this.#program));
  }
}

const functions = {
  raise_exception: (message: unknown): never => {
    throw new TemplateRefusal(String(message));
  },
  strftime_now: (format: string): string => strftime(format, new Date()),
  range: (first: number, last?: number, step = 1): number[] => {
    const [start, end] = last === undefined ? [0, first] : [first, last];
    const length = Math.max(0, Math.ceil((end - start) / step));
    return Array.from({ length }, (_, index) => start + index * step);
  },
};

/** C's `strftime` in English and local time, as far as templates use it. */
export function strftime(format: string, date: Date): string {
  return format.replaceAll(/%(-?)([a-zA-Z%])/gu, (directive, dash: string, letter: string) => {
    const text = directives[letter]?.(date);
    if (text === undefined) return directive;
    return dash === "" ? text : text.replace(/^0+(?=.)/u, "");
  });
}

const directives: Readonly<Record<string, (date: Date) => string>> = {
  "%": () => "%",
  Y: (date) => String(date.getFullYear()),
  y: (date) => pad(date.getFullYear() % 100),
  m: (date) => pad(date.getMonth() + 1),
  d: (date) => pad(date.getDate()),
  H: (date) => pad(date.getHours()),
  I: (date) => pad(date.getHours() % 12 || 12),
  M: (date) => pad(date.getMinutes()),
  S: (date) => pad(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  B: (date) => name(date, { month: "long" }),
  b: (date) => name(date, { month: "short" }),
  A: (date) => name(date, { weekday: "long" }),
  a: (date) => name(date, { weekday: "short" }),
  F: (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`,
  T: (date) => `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`,
};

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

function name(date: Date, options: Intl.DateTimeFormatOptions): string {
  return date.toLocaleDateString("en-US", options);
}
