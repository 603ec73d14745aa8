/**
 * Jinja templates by the interpreter of @huggingface/jinja, with Python's rules where it has rules of its own, and what it lacks. Only the
 * nodes named in `evaluate` are done here; everything else is the library's.
 *
 * Why both: of llama.cpp's 70 templates, the library alone (0.5.11, the newest) renders 42 as llama.cpp does for all
 * requests and fails in 179 of 1,096 renderings; with these rules it is 60 and none, and each difference has its reason
 * (docs/templates.md). nunjucks 3.2.4 parses 20 of the 70 and renders none right for all requests: its language is not
 * Python's. minja is C++ and lives in llama.cpp's tree, outside of its library. The library has no hooks, so two of its
 * private methods are replaced on the instance: package.json pins its exact version, and a test renders all templates.
 */

import {
  type Node,
  Environment,
  equals,
  parse,
  textOf,
  tokenize,
  type Entries,
  type Value,
  ArrayValue,
  BooleanValue,
  Interpreter,
  UndefinedValue,
  isArray,
  isFunction,
  isMissing,
  isNull,
  isNumber,
  isObject,
  isString,
  isTrue,
  isUndefined,
  lookUp,
  string,
  methodOf,
  numberedObject,
  strftime,
} from "./library.ts";
import { type Parts, finish } from "../../../parts.ts";
import { RenderBudget } from "./budget.ts";
import type { FilterCall, PlainFilter } from "./filters.ts";
import { type Output, listOf, runLoop } from "./for-loop.ts";
import { resolveNames } from "./names.ts";
import { type Test, testNamed, withTestCalls } from "./tests.ts";
import type {
  BinaryNode,
  CallNode,
  FilterNode,
  ForNode,
  IfNode,
  KnownNode,
  MemberNode,
  NamedNode,
  TestNode,
} from "./types.ts";

/** The longest of llama.cpp's has 30,000 characters. */
const maxSource = 1024 * 1024;

/** The template itself said no, with `raise_exception`. */
export class TemplateRefusal extends TypeError {}

export class JinjaTemplate {
  readonly #program: Node;

  /** @throws SyntaxError | Error of the parser | TypeError it is longer than any template */
  constructor(source: string) {
    if (source.length > maxSource)
      throw new TypeError(`it has ${source.length} characters, and at most ${maxSource} are read`);
    try {
      this.#program = parse(
        withTestCalls(tokenize(source, { lstrip_blocks: true, trim_blocks: true })),
      );
    } catch (cause) {
      // The library reads on behind the last token.
      if (!(cause instanceof TypeError)) throw cause;
      throw new SyntaxError("Unexpected end of input", { cause });
    }
    resolveNames(this.#program);
  }

  /** @throws as `renderInParts` */
  render(variables: Record<string, unknown>): string {
    return finish(this.renderInParts(variables));
  }

  /** @throws TemplateRefusal, or an error that names what the template asks for and is missing */
  *renderInParts(variables: Record<string, unknown>): Parts<string> {
    const environment = new Environment();
    const budget = new RenderBudget(variables);
    yield;
    const globals = { true: true, True: true, false: false, False: false, none: null, None: null };
    for (const [name, value] of Object.entries({
      ...variables,
      ...globals,
      ...functions,
      range: rangeWithin(budget),
    })) {
      // The language's own names cannot be given away.
      if (value === undefined || name === "namespace") continue;
      if (Array.isArray(value)) environment.setVariable(name, yield* listOf(value));
      else environment.set(name, value);
    }
    const { body } = this.#program as Node & { body: Node[] };
    return yield* new TemplateInterpreter(environment, budget).block(body, environment);
  }
}

const functions = {
  raise_exception: (message: unknown): never => {
    throw new TemplateRefusal(String(message));
  },
  strftime_now: (format: string): string => strftime(format, new Date()),
};

function rangeWithin(
  budget: RenderBudget,
): (first: number, last?: number, step?: number) => number[] {
  return (first, last, step = 1) => {
    const [start, end] = last === undefined ? [0, first] : [first, last];
    const length = Math.max(0, Math.ceil((end - start) / step));
    budget.step(length);
    return Array.from({ length }, (_, index) => start + index * step);
  };
}

interface Internals {
  evaluateBlock(statements: Node[], environment: Environment): Value;
  applyFilter(operand: Value, filter: FilterNode, environment: Environment): Value;
}

const ownOperators: ReadonlySet<string> = new Set(["~", "==", "!=", "in", "not in", "+", "*"]);

export class TemplateInterpreter extends Interpreter {
  readonly #applyFilter: Internals["applyFilter"];
  readonly #budget: RenderBudget;

  constructor(environment: Environment, budget: RenderBudget) {
    super(environment);
    this.#budget = budget;
    const internals = this as unknown as Internals;
    this.#applyFilter = internals.applyFilter.bind(this);
    internals.evaluateBlock = (statements, scope) => string(finish(this.block(statements, scope)));
    internals.applyFilter = (operand, filter, scope) => this.#filter(operand, filter, scope);
  }

  /** @throws TypeError the template asks for what is not there, or for more than its budget */
  override evaluate(node: Node | undefined, environment: Environment): Value {
    this.#budget.step();
    switch (node?.type) {
      case "Known":
        return (node as KnownNode).known;
      case "Identifier":
        return lookUp((node as NamedNode).value, environment);
      case "BinaryExpression":
        return this.#binary(node as BinaryNode, environment);
      case "MemberExpression":
        return this.#member(node as MemberNode, environment);
      case "CallExpression":
        return this.#call(node as CallNode, environment);
      case "ObjectLiteral":
        return this.#object(node as Node & { value: Map<Node, Node> }, environment);
      case "TupleLiteral":
        return super.evaluate({ ...node, type: "ArrayLiteral" }, environment);
      case "TestExpression":
        return this.#test(node as TestNode, environment);
      case "For":
        return string(finish(this.block([node], environment)));
      default:
        return super.evaluate(node, environment);
    }
  }

  #textOf(value: Value): string {
    if (!isString(value)) this.#budget.walk(value);
    const text = textOf(value);
    this.#budget.write(text.length);
    return text;
  }

  /** Values become text as Python's `str` makes it. The loops of the block are in parts, those of its expressions not. */
  *block(statements: Node[], environment: Environment): Parts<string> {
    const output = { text: "" };
    yield* this.write(statements, environment, output);
    return output.text;
  }

  *write(statements: Node[], environment: Environment, output: Output): Parts<void> {
    for (const statement of statements) {
      if (statement.type === "For" || statement.type === "If") {
        this.#budget.step();
        const before = output.text.length;
        if (statement.type === "For") yield* this.#for(statement as ForNode, environment, output);
        else yield* this.#if(statement as IfNode, environment, output);
        this.#budget.write(output.text.length - before);
        continue;
      }
      const value = this.evaluate(statement, environment);
      if (!isNull(value)) output.text += this.#textOf(value);
    }
  }

  *#if(node: IfNode, environment: Environment, output: Output): Parts<void> {
    const isMet = isTrue(this.evaluate(node.test, environment));
    yield* this.write(isMet ? node.body : node.alternate, environment, output);
  }

  #filter(operand: Value, filter: FilterNode, environment: Environment): Value {
    const { name } = filter.means;
    this.#budget.expand(name, operand, () => this.#values(filter.args ?? [], environment));
    return this.#budget.made(this.#filtered(operand, filter, environment));
  }

  #holds(test: Test, value: Value, args: readonly Value[]): boolean {
    if (args.length > 0) this.#budget.walk(value);
    for (const arg of args) this.#budget.walk(arg);
    return test(value, args);
  }

  #values(args: readonly Node[], environment: Environment): Value[] {
    return args.map((arg) => {
      const { value } = arg as Node & { value?: Node };
      return this.evaluate(arg.type === "KeywordArgumentExpression" ? value : arg, environment);
    });
  }

  #callOf(operand: Value, { args = [] }: FilterNode, environment: Environment): FilterCall {
    const named = new Map<string, Value>();
    const places: Value[] = [];
    for (const [index, value] of this.#values(args, environment).entries()) {
      const { key } = args[index] as Node & { key?: NamedNode };
      if (args[index]?.type === "KeywordArgumentExpression") named.set(key!.value, value);
      else places.push(value);
    }
    return {
      operand,
      args: places,
      named,
      holds: (name, value, others) => this.#holds(testNamed(name), value, others),
      step: (count) => this.#budget.step(count),
    };
  }

  #filtered(operand: Value, filter: FilterNode, environment: Environment): Value {
    const { name, asks, own, plain, each } = filter.means;
    if (asks !== undefined) {
      const args = this.#values(filter.args ?? [], environment);
      return new BooleanValue(this.#holds(asks.test, operand, args) !== asks.negate);
    }
    if (own !== undefined) return own(this.#callOf(operand, filter, environment));
    if (filter.callee === undefined) {
      const made = plain && filteredPlainly(operand, plain);
      if (made !== undefined) return made;
    } else if (isMissing(operand) && name !== "default" && name !== "tojson") {
      return new ArrayValue([]);
    } else if (isArray(operand) && name === "join") {
      // The library joins what the values hold, which for objects is no text.
      const texts = new ArrayValue(operand.value.map((item) => string(textOf(item))));
      return this.#applyFilter(texts, filter, environment);
    } else if (isArray(operand) && each !== undefined) {
      return new ArrayValue(operand.value.map((item) => this.#filter(item, each, environment)));
    }
    return this.#applyFilter(operand, filter, environment);
  }

  #binary(node: BinaryNode, environment: Environment): Value {
    const operator = node.operator.value;
    if (!ownOperators.has(operator)) return super.evaluate(node, environment);
    const left = this.evaluate(node.left, environment);
    const right = this.evaluate(node.right, environment);
    if (operator === "~") return string(this.#textOf(left) + this.#textOf(right));
    if (operator === "==" || operator === "!=") {
      this.#budget.walk(left);
      return new BooleanValue(equals(left, right) === (operator === "=="));
    }
    if (operator === "+") {
      if (isString(left) && (isString(right) || isUndefined(right)))
        return string(this.#textOf(left) + this.#textOf(right));
      if (isUndefined(left) && isString(right)) return right;
      if (isString(left) && (isObject(right) || isArray(right)))
        throw new TypeError(`cannot add ${right.type} to a string`);
    } else if (operator === "*") {
      if (isString(left) && isNumber(right)) {
        const times = Math.max(0, right.value);
        this.#budget.write(left.value.length * times);
        return string(left.value.repeat(times));
      }
    } else if (isUndefined(left)) return new BooleanValue(operator === "not in");
    else if (isArray(right)) {
      this.#budget.walk(right);
      const isIn = right.value.some((item) => equals(item, left));
      return new BooleanValue(isIn === (operator === "in"));
    }
    const evaluated: BinaryNode = { ...node, left: known(left), right: known(right) };
    return this.#budget.made(super.evaluate(evaluated, environment));
  }

  #test({ operand, asks, negate }: TestNode, environment: Environment): Value {
    const value = this.evaluate(operand, environment);
    return new BooleanValue(this.#holds(asks, value, []) !== negate);
  }

  #member(node: MemberNode, environment: Environment): Value {
    const object = this.evaluate(node.object, environment);
    if (isUndefined(object)) return object;
    if (node.computed && node.property.type === "SliceExpression") {
      const sliced: MemberNode = { ...node, object: known(object) };
      return super.evaluate(sliced, environment);
    }
    const property = node.computed
      ? this.evaluate(node.property, environment)
      : string(String(node.property.value));
    if (isString(property)) {
      const method = methodOf(object, property.value);
      if (method !== undefined) return method;
    } else if (isObject(object)) {
      return object.value.get(property.value as number) ?? new UndefinedValue(undefined);
    }
    const own = isObject(object) ? object.value.get(String(property.value)) : undefined;
    if (own !== undefined) return own;
    const evaluated: MemberNode = {
      ...node,
      computed: true,
      object: known(object),
      property: known(property),
    };
    return super.evaluate(evaluated, environment);
  }

  /** `schema.items()` is the method, whatever keys the object has. */
  #call(node: CallNode, environment: Environment): Value {
    const callee = this.#callee(node, environment);
    if (!isFunction(callee)) throw new TypeError(`${spell(node.callee)}() is unknown`);
    const evaluated: CallNode = { ...node, callee: known(callee) };
    return this.#budget.made(super.evaluate(evaluated, environment));
  }

  #callee({ callee: node, args }: CallNode, environment: Environment): Value {
    if (node.type !== "MemberExpression") return this.evaluate(node, environment);
    const member = node as MemberNode;
    const object = this.evaluate(member.object, environment);
    const name = String(member.property.value);
    this.#budget.expand(name, object, () => this.#values(args, environment));
    const method = !member.computed && isObject(object) ? object.builtins.get(name) : undefined;
    const evaluated: MemberNode = { ...member, object: known(object) };
    return method ?? this.evaluate(evaluated, environment);
  }

  #object(node: Node & { value: Map<Node, Node> }, environment: Environment): Value {
    const isNumbered = [...node.value.keys()].some((key) => key.type === "IntegerLiteral");
    if (!isNumbered) return super.evaluate(node, environment);
    const entries: Entries = new Map();
    for (const [key, value] of node.value) {
      const name = this.evaluate(key, environment).value as string | number;
      entries.set(name, this.evaluate(value, environment));
    }
    return numberedObject(entries);
  }

  /** What is undefined has no items; a string's items are its characters. */
  *#for(node: ForNode, environment: Environment, output: Output): Parts<void> {
    const { iterable } = node;
    const isFiltered = iterable.type === "SelectExpression";
    let items = this.evaluate(isFiltered ? iterable.lhs : iterable, environment);
    if (isUndefined(items)) items = new ArrayValue([]);
    else if (isString(items)) items = new ArrayValue([...items.value].map(string));
    // A loop without a body takes its time too.
    if (isArray(items)) this.#budget.step(items.value.length);
    yield* runLoop({ node, iterable: items, environment, output }, this);
  }
}

/** @returns undefined where the library's own filter stands */
function filteredPlainly(operand: Value, { missing, array, text }: PlainFilter): Value | undefined {
  if (isMissing(operand)) return missing?.();
  if (isArray(operand)) return array?.(operand.value);
  return isString(operand) ? text?.(operand.value) : undefined;
}

function known(value: Value): KnownNode {
  return { type: "Known", known: value };
}

/** A callee as the template wrote it, as far as it helps. */
function spell(node: Node): string {
  if (node.type === "Known") return "…";
  if (node.type !== "MemberExpression")
    return String((node as Partial<NamedNode>).value ?? node.type);
  const { object, property, computed } = node as MemberNode;
  return computed ? `${spell(object)}[…]` : `${spell(object)}.${String(property.value)}`;
}
