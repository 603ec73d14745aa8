/**
 * Jinja templates by the interpreter of @huggingface/jinja, with Python's rules where it has rules of its own, and what it lacks. Only
 * operators, filters, loops and the nodes named in `evaluate` are done here; everything else is the library's.
 *
 * Why both: of llama.cpp's 70 templates, the library alone (0.5.11, the newest) renders 42 as llama.cpp does for all
 * requests and fails in 179 of 1,096 renderings; with these rules it is 58 and none, and each difference has its reason
 * (docs/templates.md). nunjucks 3.2.4 parses 20 of the 70 and renders none right for all requests: its language is not
 * Python's. minja is C++ and lives in llama.cpp's tree, outside of its library. The library has no hooks, so three of its
 * private methods are replaced on the instance: package.json pins its exact version, and a test renders all templates.
 */

import {
  type Call,
  type Entries,
  type Internals,
  type Node,
  type Value,
  ArrayValue,
  BooleanValue,
  Environment,
  FunctionValue,
  Interpreter,
  ObjectValue,
  isFunction,
  isNumber,
  isObject,
  isString,
  isTrue,
  isUndefined,
  lookUp,
  parse,
  string,
  toValue,
  tokenize,
  undefinedValue,
} from "./library.ts";
import { type Parts, finish } from "../../../parts.ts";
import { RenderBudget, functionsWithin } from "./budget.ts";
import { type Output, listOf, runLoop } from "./for-loop.ts";
import { charactersOf, methodNamed, numberedObject, objectMethod, separate } from "./methods.ts";
import { filterMeaning, resolveNames, sizeOf, spell } from "./names.ts";
import { prepare } from "./source.ts";
import { holds, testNamed, withTestCalls } from "./tests.ts";
import { withBlocks, withChains, withNumbers, withTuples } from "./tokens.ts";
import { known } from "./values.ts";
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
  TestNode,
  WithNode,
} from "./types.ts";

/** Statements that write nothing. */
const silent: ReadonlySet<string> = new Set(["Set", "Macro", "Comment"]);

/** The longest of llama.cpp's has 30,000 characters. */
const maxSource = 1024 * 1024;

export class JinjaTemplate {
  readonly #program: Node;

  /** @throws SyntaxError | Error of the parser | TypeError it is longer than any template */
  constructor(source: string) {
    if (source.length > maxSource)
      throw new TypeError(`it has ${source.length} characters, and at most ${maxSource} are read`);
    try {
      const tokens = withNumbers(tokenize(prepare(source)));
      this.#program = parse(withBlocks(withTestCalls(withChains(withTuples(tokens)))));
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
      else environment.setVariable(name, toValue(value));
    }
    const { body } = this.#program as Node & { body: Node[] };
    return yield* new TemplateInterpreter(environment, budget).block(body, environment);
  }
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
    internals.applyFilter = (operand, node, scope) =>
      this.#filter(operand, node as FilterNode, scope);
    const evaluateArguments = internals.evaluateArguments.bind(this);
    internals.evaluateArguments = (args, scope) => {
      const given = evaluateArguments(args, scope);
      // `*list` and `**object` are as many as these hold.
      budget.step(given[0].length + given[1].size);
      return given;
    };
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
      case "CallStatement":
        this.#search(node);
        return super.evaluate(node, environment);
      case "For":
        return string(finish(this.block([node], environment)));
      default:
        return super.evaluate(node, environment);
    }
  }

  /** Values become text as Python's `str` makes it. The loops of the block are in parts, those of its expressions not. */
  *block(statements: Node[], environment: Environment): Parts<string> {
    const output = { text: "" };
    yield* this.write(statements, environment, output);
    return output.text;
  }

  *write(statements: Node[], environment: Environment, output: Output): Parts<void> {
    for (const statement of statements) {
      const { type } = statement;
      if (type === "For" || type === "If" || type === "With") {
        this.#budget.step();
        const before = output.text.length;
        if (type === "For") yield* this.#for(statement as ForNode, environment, output);
        else if (type === "If") yield* this.#if(statement as IfNode, environment, output);
        else yield* this.#with(statement as WithNode, environment, output);
        this.#budget.write(output.text.length - before);
        continue;
      }
      const value = this.evaluate(statement, environment);
      if (!silent.has(type)) output.text += this.#budget.textOf(value);
    }
  }

  *#if(node: IfNode, environment: Environment, output: Output): Parts<void> {
    const isMet = isTrue(this.evaluate(node.test, environment));
    yield* this.write(isMet ? node.body : node.alternate, environment, output);
  }

  /** No value knows the names of the others. */
  *#with({ values, body }: WithNode, environment: Environment, output: Output): Parts<void> {
    const scope = new Environment(environment);
    for (const { key, value } of values)
      scope.setVariable(key.value, this.evaluate(value, environment));
    yield* this.write(body, scope, output);
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
      return new BooleanValue(holds(asks.test, operand, args, this.#budget) !== asks.negate);
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
        return (value, others) => holds(test, value, others, this.#budget);
      },
      filter: (wanted) => {
        const means = filterMeaning(wanted);
        return (value, rest) => this.#applied(means, { operand: value, ...rest });
      },
      budget: this.#budget,
    });
    return this.#budget.made(made);
  }

  #values(args: readonly Node[], environment: Environment): Value[] {
    return args.map((arg) => {
      const { value } = arg as Node & { value?: Node };
      return this.evaluate(arg.type === "KeywordArgumentExpression" ? value : arg, environment);
    });
  }

  #binary(node: BinaryNode, environment: Environment): Value {
    const isOwn = node.operate !== undefined;
    return isOwn ? this.#comparison(node, environment).holds : super.evaluate(node, environment);
  }

  /** What stands between two operators of a chain is evaluated once. */
  #comparison(
    { left, right, operator, operate }: BinaryNode,
    environment: Environment,
  ): { holds: Value; last: Value } {
    let first: Value;
    if (operator.isChained) {
      const before = this.#comparison(left as BinaryNode, environment);
      if (!isTrue(before.holds)) return before;
      first = before.last;
    } else first = this.evaluate(left, environment);
    const last = this.evaluate(right, environment);
    return { holds: operate!(first, last, this.#budget), last };
  }

  #test({ operand, asks, negate }: TestNode, environment: Environment): Value {
    const value = this.evaluate(operand, environment);
    return new BooleanValue(holds(asks, value, [], this.#budget) !== negate);
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
    } else if (property.type !== "IntegerValue") return undefinedValue;
    const own = isObject(object) ? object.value.get(String(property.value)) : undefined;
    if (own !== undefined) return own;
    const evaluated: MemberNode = {
      ...node,
      computed: true,
      object: known(object),
      property: known(property),
    };
    const found = super.evaluate(evaluated, environment);
    const isMethod = isString(property) && isFunction(found);
    return isMethod ? this.#charged(found, object, property.value) : found;
  }

  /** However it comes to be called. */
  #charged(method: Value & { value: Call }, object: Value, name: string): Value {
    const call: Call = (args, scope) => {
      const { places, named } = separate(args);
      const given = [...places, ...named.values()];
      const argument: FilterCall["argument"] = (place, key) => places[place] ?? named.get(key);
      if (isString(object)) this.#budget.expand(name, object, given, argument);
      else if (name === "dictsort") this.#budget.walk(object);
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

  /** The library looks for `varargs` and `kwargs` in all of a macro, each time that the macro is declared. */
  #search(macro: Node): void {
    this.#budget.step(sizeOf(macro) >> 3);
  }

  /** It sees what is known where it stands, not where it is called. */
  #macro(node: Node & { name: NamedNode }, environment: Environment): Value {
    const { value: name } = node.name;
    this.#search(node);
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
    const method = !member.computed && isObject(object) ? objectMethod(object, name) : undefined;
    if (method !== undefined && isFunction(method)) return this.#charged(method, object, name);
    const evaluated: MemberNode = { ...member, object: known(object) };
    return this.evaluate(evaluated, environment);
  }

  #object(node: Node & { value: Map<Node, Node> }, environment: Environment): Value {
    const entries: Entries = new Map();
    for (const [key, value] of node.value) {
      const name = this.evaluate(key, environment);
      if (!isString(name) && !isNumber(name))
        throw new TypeError(`a key is a text or a number, not ${name.type}`);
      entries.set(name.value, this.evaluate(value, environment));
    }
    const isNumbered = [...entries.keys()].some((key) => typeof key === "number");
    return isNumbered ? numberedObject(entries) : new ObjectValue(entries);
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
    const budget = this.#budget;
    yield* runLoop({ node, iterable: items, environment, output, budget }, this);
  }
}
