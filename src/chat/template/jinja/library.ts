/**
 * The Jinja library as it is used here. Its own declarations import each other without file endings, which
 * Node's resolution does not follow, and they leave out the runtime's values and the syntax tree.
 */

import * as library from "@huggingface/jinja";

export interface Node {
  readonly type: string;
}

export interface Value {
  readonly type: string;
  readonly value: unknown;
  readonly builtins: ReadonlyMap<string, Value>;
  toString(): string;
}

export interface Environment {
  readonly variables: ReadonlyMap<string, Value>;
  readonly parent?: Environment;
  /** Declares a variable, its value converted from JavaScript's. */
  set(name: string, value: unknown): Value;
}

export interface Interpreter {
  run(program: Node): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
}

interface Library {
  Environment: new () => Environment;
  Interpreter: new (environment: Environment) => Interpreter;
  tokenize(source: string, options: { lstrip_blocks: boolean; trim_blocks: boolean }): unknown;
  parse(tokens: unknown): Node;
}

export const { Environment, Interpreter, tokenize, parse } = library as unknown as Library;
