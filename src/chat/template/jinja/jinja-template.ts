/** A parsed Jinja template, rendered by the rules of Python's Jinja. */

import { TemplateInterpreter } from "./interpreter.ts";
import { Environment, type Node, parse, tokenize } from "./library.ts";
import { strftime } from "./strftime.ts";
import { textOf } from "./values.ts";

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
