/** `{% for %}` by the library's rules, in parts: a conversation's messages are one loop. */

import type { Parts } from "../../../parts.ts";
import type { RenderBudget } from "./budget.ts";
import {
  type Environment as Scope,
  type Node,
  type Value,
  ArrayValue,
  BooleanValue,
  Environment,
  FunctionValue,
  IntegerValue,
  Interpreter,
  ObjectValue,
  isArray,
  isObject,
  isTrue,
  keysOf,
  toValue,
  undefinedValue,
} from "./library.ts";
import type { ForNode, TargetNode } from "./types.ts";
import { areEqual } from "./values.ts";

/** What was written so far. */
export interface Output {
  text: string;
}

interface Evaluator {
  evaluate(node: Node, scope: Scope): Value;
  write(statements: Node[], scope: Scope, output: Output): Parts<void>;
}

interface Loop {
  node: ForNode;
  /** What it goes through. */
  iterable: Value;
  environment: Scope;
  output: Output;
  budget: RenderBudget;
}

/** What an iteration wrote before it was left stays. */
export function* runLoop(
  { node, iterable, environment, output, budget }: Loop,
  evaluator: Evaluator,
): Parts<void> {
  const items: Value[] = [];
  for (const item of itemsOf(iterable)) {
    if (passes(node, item, environment, evaluator)) items.push(item);
    yield;
  }
  // As Jinja counts, an iteration that was left is none.
  let hasRun = false;
  const changed = changes(budget);
  for (const [index, item] of items.entries()) {
    // What an iteration sets, the next one does not know.
    const scope = new Environment(environment);
    scope.setVariable("loop", loopVariable(items, index, changed));
    assign(node.loopvar, item, scope);
    try {
      yield* evaluator.write(node.body, scope, output);
    } catch (error) {
      if (error instanceof Continue) continue;
      if (error instanceof Break) break;
      throw error;
    }
    hasRun = true;
    yield;
  }
  if (!hasRun) yield* evaluator.write(node.defaultBlock, new Environment(environment), output);
}

function itemsOf(iterable: Value): readonly Value[] {
  if (isArray(iterable)) return iterable.value;
  if (isObject(iterable)) return keysOf(iterable);
  throw new TypeError(`a loop cannot go through ${iterable.type}`);
}

/** `for item in list if …`. The loop itself is not known there. */
function passes(node: ForNode, item: Value, scope: Scope, evaluator: Evaluator): boolean {
  const { test } = node.iterable;
  if (node.iterable.type !== "SelectExpression" || test === undefined) return true;
  const inner = new Environment(scope);
  assign(node.loopvar, item, inner);
  return isTrue(evaluator.evaluate(test, inner));
}

function assign({ type, value: names }: TargetNode, item: Value, scope: Scope): void {
  if (typeof names === "string") scope.setVariable(names, item);
  else if (type !== "TupleLiteral") throw new TypeError(`a loop cannot assign to ${type}`);
  else if (!isArray(item)) throw new TypeError(`${item.type} cannot be unpacked`);
  else if (item.value.length !== names.length)
    throw new TypeError(`${item.value.length} items cannot be unpacked into ${names.length}`);
  else for (const [index, name] of names.entries()) assign(name, item.value[index]!, scope);
}

/** Whether it is called with other values than the last time. */
function changes(budget: RenderBudget): Value {
  let last: Value | undefined;
  return new FunctionValue((args) => {
    const given = new ArrayValue(args);
    const isSame = last !== undefined && areEqual(last, given, budget);
    last = given;
    return new BooleanValue(!isSame);
  });
}

function cycle(args: readonly Value[], index: number): Value {
  if (args.length === 0) throw new TypeError("loop.cycle takes at least one value");
  return args[index % args.length]!;
}

function loopVariable(items: readonly Value[], index: number, changed: Value): Value {
  const { length } = items;
  return new ObjectValue(
    new Map<string, Value>([
      ["index", new IntegerValue(index + 1)],
      ["index0", new IntegerValue(index)],
      ["revindex", new IntegerValue(length - index)],
      ["revindex0", new IntegerValue(length - index - 1)],
      ["first", new BooleanValue(index === 0)],
      ["last", new BooleanValue(index === length - 1)],
      ["length", new IntegerValue(length)],
      ["previtem", items[index - 1] ?? undefinedValue],
      ["nextitem", items[index + 1] ?? undefinedValue],
      // Only recursive loops, which are not known here, are deeper.
      ["depth", new IntegerValue(1)],
      ["depth0", new IntegerValue(0)],
      ["changed", changed],
      ["cycle", new FunctionValue((args) => cycle(args, index))],
    ]),
  );
}

/** The library exports neither of the errors by which its loops end. */
const [Break, Continue] = ["Break", "Continue"].map((type) => {
  try {
    new Interpreter(new Environment()).evaluate({ type }, new Environment());
  } catch (error) {
    return (error as object).constructor as new () => Error;
  }
  throw new TypeError(`the library does not know ${type}`);
}) as [new () => Error, new () => Error];

/** A list's value, made of JavaScript's values in parts. */
export function* listOf(values: readonly unknown[]): Parts<Value> {
  const items: Value[] = [];
  for (const value of values) {
    items.push(toValue(value));
    yield;
  }
  return new ArrayValue(items);
}
