/**
 * Jinja templates by the interpreter of @huggingface/jinja, with Python's rules where it has rules of its own, and what it lacks. Only
 * operators, filters, loops and the nodes named in `evaluate` are done here; everything else is the library's.
 *
 * Why both: of llama.cpp's 70 templates, the library alone (0.5.11, the newest) renders 42 as llama.cpp does for all
 * requests and fails in 179 of 1,096 renderings; with these rules it is 60 and none, and each difference has its reason
 * (docs/templates.md). nunjucks 3.2.4 parses 20 of the 70 and renders none right for all requests: its language is not
 * Python's. minja is C++ and lives in llama.cpp's tree, outside of its library. The library has no hooks, so two of its
 * private methods are replaced on the instance: package.json pins its exact version, and a test renders all templates.
 */

import {
  type Call,
  type Entries,
  type Node,
  type Value,
  ArrayValue,
  BooleanValue,
  Environment,
  FunctionValue,
  Interpreter,
  isFunction,
  isNull,
  isNumber,
  isObject,
  isString,
  isTrue,
  isUndefined,
  lookUp,
  parse,
  string,
  tokenize,
  undefinedValue,
} from "./library.ts";
import { type Parts, finish } from "../../../parts.ts";
import { RenderBudget } from "./budget.ts";
import { functionsWithin } from "./functions.ts";
import { type Output, listOf, runLoop } from "./for-loop.ts";
import { charactersOf, methodNamed, numberedObject, separate } from "./methods.ts";
import { filterMeaning, resolveNames } from "./names.ts";
import { prepare } from "./source.ts";
import { readsAll, testNamed, withTestCalls } from "./tests.ts";
import { withChains, withTuples } from "./tokens.ts";
import type {
  BinaryNode,
  CallNode,
  FilterCall,
  FilterMeaning,
  FilterNode,
  ForNode,
  IfNode,
  KnownNode,
  MemberNode,
  NamedNode,
  Test,
  TestNode,
} from "./types.ts";

/** The longest of llama.cpp's has 30,000 characters. */
const maxSource = 1024 * 1024;

export class JinjaTemplate {
  readonly #program: Node;

  /** @throws SyntaxError | Error of the parser | TypeError it is longer than any template */
  constructor(source: string) {
    if (source.length > maxSource)
      throw new TypeError(`it has ${source.length} characters, and at most ${maxSource} are read`);
    try {
      this.#program = parse(withTestCalls(withChains(withTuples(tokenize(prepare(source))))));
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
      ...functionsWithin(budget),
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

interface Internals {
  evaluateBlock(statements: Node[], environment: Environment): Value;
  applyFilter(operand: Value, filter: FilterNode, environment: Environment): Value;
}

export class TemplateInterpreter extends Interpreter {
  readonly #budget: RenderBudget;
  /** Of the text that was looked into last: a template may go through them one by one. */
  #characters: { text: Value; values: readonly string[] } = { text: undefinedValue, values: [] };

  constructor(environment: Environment, budget: RenderBudget) {
    super(environment);
    this.#budget = budget;
    const internals = this as unknown as Internals;
    internals.evaluateBlock = (statements, scope) => string(finish(this.block(statements, scope)));
    internals.applyFilter = (operand, node, scope) => this.#filter(operand, node, scope);
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
      case "Macro":
        return this.#macro(node as Node & { name: NamedNode }, environment);
      case "For":
        return string(finish(this.block([node], environment)));
      default:
        return super.evaluate(node, environment);
    }
  }

  /** Values become text as Python's `str` makes it, but none is written as nothing, as llama.cpp does. The loops of the block are in parts, those of its expressions not. */
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
      if (!isNull(value)) output.text += this.#budget.textOf(value);
    }
  }

  *#if(node: IfNode, environment: Environment, output: Output): Parts<void> {
    const isMet = isTrue(this.evaluate(node.test, environment));
    yield* this.write(isMet ? node.body : node.alternate, environment, output);
  }

  #filter(operand: Value, node: FilterNode, environment: Environment): Value {
    const named = new Map<string, Value>();
    const args: Value[] = [];
    for (const [index, value] of this.#values(node.args ?? [], environment).entries()) {
      const { type, key } = node.args![index] as Node & { key?: NamedNode };
      if (type === "KeywordArgumentExpression") named.set(key!.value, value);
      else args.push(value);
    }
    return this.#applied(node.means, { operand, args, named });
  }

  #applied(
    { name, asks, filter }: FilterMeaning,
    { operand, args, named }: Pick<FilterCall, "operand" | "args" | "named">,
  ): Value {
    if (asks !== undefined)
      return new BooleanValue(this.#holds(asks.test, operand, args) !== asks.negate);
    const argument: FilterCall["argument"] = (place, key) => args[place] ?? named.get(key);
    this.#budget.expand(name, operand, [...args, ...named.values()], argument);
    const made = filter({
      operand,
      args,
      named,
      argument,
      isSet: (place, key) => isTrue(argument(place, key) ?? undefinedValue),
      test: (wanted) => {
        const test = testNamed(wanted);
        return (value, others) => this.#holds(test, value, others);
      },
      filter: (wanted) => {
        const means = filterMeaning(wanted);
        return (value, rest) => this.#applied(means, { operand: value, ...rest });
      },
      budget: this.#budget,
    });
    return this.#budget.made(made);
  }

  #holds(test: Test, value: Value, args: readonly Value[]): boolean {
    if (args.length > 0 || readsAll(test)) this.#budget.walk(value);
    for (const arg of args) {
      this.#budget.walk(arg);
      if (isString(arg) && isString(value)) this.#budget.search(arg.value, value.value);
    }
    return test(value, args);
  }

  #values(args: readonly Node[], environment: Environment): Value[] {
    return args.map((arg) => {
      const { value } = arg as Node & { value?: Node };
      return this.evaluate(arg.type === "KeywordArgumentExpression" ? value : arg, environment);
    });
  }

  #binary(node: BinaryNode, environment: Environment): Value {
    const { operate } = node;
    if (operate === undefined) return super.evaluate(node, environment);
    const { isChained } = node.operator;
    const first = this.evaluate(node.left, environment);
    if (isChained && !isTrue(first)) return first;
    const left = isChained ? this.evaluate((node.left as BinaryNode).right, environment) : first;
    return operate(left, this.evaluate(node.right, environment), this.#budget);
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
      this.#budget.skim(object);
      return this.#budget.made(super.evaluate(sliced, environment));
    }
    const isExpression = node.computed || node.property.type === "IntegerLiteral";
    const property = isExpression
      ? this.evaluate(node.property, environment)
      : string(String(node.property.value));
    if (isString(property)) {
      const methodOf = node.method === null ? methodNamed(property.value) : node.method;
      const method = methodOf?.(object);
      if (method !== undefined) return this.#charged(method, object, property.value);
    } else if (isObject(object)) {
      return object.value.get(property.value as number) ?? undefinedValue;
    } else if (isString(object) && isNumber(property)) {
      return this.#characterAt(object, property.value);
    }
    const own = isObject(object) ? object.value.get(String(property.value)) : undefined;
    if (own !== undefined) return own;
    const evaluated: MemberNode = {
      ...node,
      computed: true,
      object: known(object),
      property: known(property),
    };
    const found = super.evaluate(evaluated, environment);
    const isMethod = isString(object) && isString(property) && isFunction(found);
    return isMethod ? this.#charged(found, object, property.value) : found;
  }

  /** However it comes to be called. */
  #charged(method: Value & { value: Call }, object: Value, name: string): Value {
    const call: Call = (args, scope) => {
      const { places, named } = separate(args);
      const given = [...places, ...named.values()];
      const argument: FilterCall["argument"] = (place, key) => places[place] ?? named.get(key);
      if (isString(object)) this.#budget.expand(name, object, given, argument);
      else for (const value of given) this.#budget.skim(value);
      return method.value(args, scope);
    };
    return new FunctionValue(call);
  }

  #characterAt(text: Value & { value: string }, place: number): Value {
    if (this.#characters.text !== text) {
      this.#budget.skim(text);
      this.#characters = { text, values: Array.from(text.value) };
    }
    const character = this.#characters.values.at(place);
    return character === undefined ? undefinedValue : string(character);
  }

  /** It sees what is known where it stands, not where it is called. */
  #macro(node: Node & { name: NamedNode }, environment: Environment): Value {
    const { value: name } = node.name;
    const nothing = super.evaluate(node, environment);
    const macro = lookUp(name, environment) as Value & { value: Call };
    const call: Call = (args, scope) => {
      const inner = new Environment(environment);
      const caller = scope.variables.get("caller");
      if (caller !== undefined) inner.setVariable("caller", caller);
      return macro.value(args, inner);
    };
    environment.setVariable(name, new FunctionValue(call));
    return nothing;
  }

  /** `schema.items()` is the method, whatever keys the object has. */
  #call(node: CallNode, environment: Environment): Value {
    const callee = this.#callee(node, environment);
    if (!isFunction(callee)) throw new TypeError(`${spell(node.callee)}() is unknown`);
    const evaluated: CallNode = { ...node, callee: known(callee) };
    return this.#budget.made(super.evaluate(evaluated, environment));
  }

  #callee({ callee: node }: CallNode, environment: Environment): Value {
    if (node.type !== "MemberExpression") return this.evaluate(node, environment);
    const member = node as MemberNode;
    const object = this.evaluate(member.object, environment);
    const name = String(member.property.value);
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
    // A loop without a body takes its time too.
    if (isString(items)) this.#budget.step(items.value.length);
    else this.#budget.skim(items);
    if (isUndefined(items)) items = new ArrayValue([]);
    else if (isString(items)) items = new ArrayValue(charactersOf(items.value));
    yield* runLoop({ node, iterable: items, environment, output }, this);
  }
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
