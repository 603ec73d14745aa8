/**
 * A conjunction of subschemas, some of them negated, as alternatives for one JSON type. Keywords that no mask can
 * enforce become issues and are left out, which only allows more. What is not an issue is exact.
 */

import { isJsonObject } from "../../../json.ts";
import type { SchemaDocument } from "../read/document.ts";
import type { Steps } from "../steps.ts";
import type { JsonObject, JsonType, Literal, SchemaIssue, SchemaNode } from "../types.ts";
import { arrayKeywords } from "./arrays.ts";
import { combiningKeywords } from "./combining.ts";
import { constantKeywords } from "./constants.ts";
import { Facts } from "./facts.ts";
import { type Keyword, type KeywordContext, type Way, Unsupported } from "./keyword.ts";
import { numberKeywords } from "./numbers.ts";
import { objectKeywords } from "./objects.ts";
import { stringKeywords } from "./strings.ts";
import { referredBy, withoutImplied } from "./tagged-union.ts";

const keywords = new Map<string, Keyword>(
  Object.entries({
    ...combiningKeywords,
    ...constantKeywords,
    ...numberKeywords,
    ...stringKeywords,
    ...arrayKeywords,
    ...objectKeywords,
  }),
);

/** Alternatives of one conjunction and type, of the first union and of what others make of it; more are not told apart. */
const maxAlternatives = { union: 2000, combined: 200 };

interface Branch {
  facts: Facts;
  pending: Literal[];
  seen: Set<string>;
  choices: Choice[];
}

interface Choice {
  ways: Way[];
  node: SchemaNode;
  keyword: string;
  /** What must fail, which may turn out to do so. */
  refused?: Literal;
}

interface ExpandOptions {
  report(issue: SchemaIssue): void;
  /** Could a value satisfy all of these? True also where it cannot be told. */
  mayHold(type: JsonType, literals: readonly Literal[]): boolean;
  /** One for each literal that is looked at, probes included. */
  steps: Steps;
}

export class Expander {
  readonly #document: SchemaDocument;
  readonly #options: ExpandOptions;

  constructor(document: SchemaDocument, options: ExpandOptions) {
    this.#document = document;
    this.#options = options;
  }

  /** @returns one entry for each alternative; none: no value of this type can be */
  expand(type: JsonType, literals: readonly Literal[]): Facts[] {
    const complete: Facts[] = [];
    const start: Branch = {
      facts: new Facts(type),
      pending: literals.toReversed(),
      seen: new Set(),
      choices: [],
    };
    const branches = [start];
    let most = maxAlternatives.combined;
    for (let branch = branches.pop(); branch !== undefined; branch = branches.pop()) {
      if (!this.#settle(branch)) continue;
      const choice = takeSmallest(branch.choices);
      if (choice === undefined) {
        complete.push(branch.facts);
        continue;
      }
      if (choice.refused !== undefined && this.#fails(branch.facts, choice.refused)) {
        branches.push(branch);
        continue;
      }
      const ways = choice.ways.filter((way) => !this.#isExcluded(branch.facts, way));
      const { length } = ways;
      if (length < 2) {
        const [only] = ways;
        if (only !== undefined && take(branch, only)) branches.push(branch);
        continue;
      }
      if (complete.length + branches.length === 0 && length <= maxAlternatives.union)
        most = Math.max(most, length);
      if (complete.length + branches.length + length > most) {
        const { node, keyword } = choice;
        const reason = "makes too many combinations with the others";
        this.#options.report({ path: node.path, keyword, reason });
        branches.push(branch);
        continue;
      }
      for (const way of ways.toReversed()) {
        this.#options.steps.count(branch.facts.size() + branch.seen.size);
        const fork = forkOf(branch);
        if (take(fork, way)) branches.push(fork);
      }
    }
    return complete;
  }

  /** Works off what is certain. @returns false when the branch cannot be */
  #settle(branch: Branch): boolean {
    for (let literal = branch.pending.pop(); literal; literal = branch.pending.pop()) {
      this.#options.steps.take(1);
      const key = `${literal.holds ? "+" : "-"}${literal.node.id}/${literal.scopes.join()}`;
      if (branch.seen.has(key)) continue;
      branch.seen.add(key);
      if (!this.#unfold(branch, literal)) return false;
    }
    return this.#isPossible(branch.facts);
  }

  /** False where what is needed cannot be, as constants tell: of a kind of object that excludes the others. */
  #isPossible({ properties, required }: Facts): boolean {
    for (const name of required) {
      const literals = properties.get(name);
      if (literals === undefined || literals.length < 2) continue;
      this.#options.steps.count(literals.length);
      const needed = withoutImplied(this.#document, literals);
      if (needed === null) return false;
      if (needed.length < literals.length) properties.set(name, [...needed]);
    }
    return true;
  }

  /** It wants something else of a property that is needed, as constants tell. */
  #isExcluded({ properties, required }: Facts, { literals = [] }: Way): boolean {
    return literals.some(({ node, holds }) => {
      const at = holds ? referredBy(this.#document, node) : null;
      if (at === null || !isJsonObject(at.schema)) return false;
      const { properties: wanted } = at.schema;
      return Object.keys(isJsonObject(wanted) ? wanted : {}).some((name) => {
        const known = properties.get(name);
        if (known === undefined || !required.has(name)) return false;
        this.#options.steps.count(known.length);
        const own = { node: this.#document.child(at, "properties", name), holds, scopes: [] };
        return withoutImplied(this.#document, [...known, own]) === null;
      });
    });
  }

  #unfold(branch: Branch, literal: Literal): boolean {
    const { schema } = literal.node;
    if (typeof schema === "boolean") return schema === literal.holds;
    if (!literal.holds && this.#fails(branch.facts, literal)) return true;
    const context = this.#context(branch, literal, schema);
    return literal.holds ? this.#require(branch, context) : this.#refuse(branch, context, literal);
  }

  /** What cannot hold fails. */
  #fails(facts: Facts, refused: Literal): boolean {
    return this.#isExcluded(facts, { literals: [{ ...refused, holds: true }] });
  }

  #require(branch: Branch, context: KeywordContext): boolean {
    const { node } = context;
    const literals: Literal[] = [];
    for (const [keyword, value, meaning] of this.#keywordsOf(context)) {
      const choices = this.#attempt(node, keyword, () =>
        meaning.choices === undefined
          ? [meaning.ways(value, context)]
          : meaning.choices(value, context),
      );
      for (const ways of choices ?? []) {
        const [way] = ways;
        if (way === undefined) return false;
        if (ways.length > 1) branch.choices.push({ ways, node, keyword });
        else {
          if (way.change?.(branch.facts) === false) return false;
          literals.push(...(way.literals ?? []));
        }
      }
    }
    // Reversed, because the pending ones are a stack and properties keep the order of the schema.
    branch.pending.push(...literals.toReversed());
    return true;
  }

  /** The conjunction fails where one keyword does. */
  #refuse(branch: Branch, context: KeywordContext, refused: Literal): boolean {
    const { node } = context;
    const ways: Way[] = [];
    for (const [keyword, value, meaning] of this.#keywordsOf(context)) {
      const failing = this.#attempt(node, keyword, () => meaning.ways(value, context));
      if (failing === null) return true;
      ways.push(...failing);
    }
    if (ways.some((way) => way.literals === undefined && way.change === undefined)) return true;
    const [way] = ways;
    if (way === undefined) return false;
    if (ways.length === 1) return take(branch, way);
    branch.choices.push({ ways, node, keyword: "not", refused });
    return true;
  }

  /** @returns null where no mask can enforce the keyword */
  #attempt<T>({ path }: SchemaNode, keyword: string, read: () => T): T | null {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      this.#options.report({ path, keyword, ...error.problem });
      return null;
    }
  }

  /** Those that speak of the type. In draft 7 nothing counts beside a reference. */
  *#keywordsOf({ schema, type }: KeywordContext): Generator<[string, unknown, Keyword]> {
    const isReference = this.#document.draft === "draft-07" && "$ref" in schema;
    for (const [keyword, value] of Object.entries(schema)) {
      const meaning = keywords.get(keyword);
      if (meaning === undefined || (isReference && keyword !== "$ref")) continue;
      if (meaning.types?.includes(type) ?? true) yield [keyword, value, meaning];
    }
  }

  #context(branch: Branch, { node, holds, scopes }: Literal, schema: JsonObject): KeywordContext {
    const document = this.#document;
    const { type } = branch.facts;
    const inner = holds ? this.#openScope(branch, node, schema, scopes) : [];
    return {
      document,
      node,
      schema,
      type,
      holds,
      scopes: inner,
      count: this.#options.steps.count,
      literal: (isHeld, ...keys) => ({
        node: document.child(node, ...keys),
        holds: isHeld,
        scopes: isHeld ? inner : [],
      }),
      mayHold: (literals) => this.#options.mayHold(type, literals),
    };
  }

  /** `unevaluated…` collects what this node and all below it in the same place evaluate. */
  #openScope(
    branch: Branch,
    node: SchemaNode,
    schema: JsonObject,
    scopes: readonly number[],
  ): readonly number[] {
    const { facts } = branch;
    const hasProperties = facts.type === "object" && "unevaluatedProperties" in schema;
    const hasItems = facts.type === "array" && "unevaluatedItems" in schema;
    if (!hasProperties && !hasItems) return scopes;
    const literal = (keyword: string): Literal => ({
      node: this.#document.child(node, keyword),
      holds: true,
      scopes: [],
    });
    facts.scopes.push({
      node,
      properties: hasProperties ? literal("unevaluatedProperties") : null,
      items: hasItems ? literal("unevaluatedItems") : null,
      names: new Set(),
      patterns: [],
      allProperties: false,
      itemCount: 0,
      allItems: false,
      contains: [],
    });
    // What the outer ones see of this node is everything, once the inner one has spoken.
    for (const outer of facts.scopesAt(scopes)) {
      if (hasProperties) outer.allProperties = true;
      if (hasItems) outer.allItems = true;
    }
    return [...scopes, facts.scopes.length - 1];
  }
}

function takeSmallest(choices: Choice[]): Choice | undefined {
  let best = 0;
  for (let i = 1; i < choices.length; i++)
    if (choices[i]!.ways.length < choices[best]!.ways.length) best = i;
  return choices.splice(best, 1)[0];
}

function forkOf(branch: Branch): Branch {
  return {
    facts: branch.facts.clone(),
    pending: [...branch.pending],
    seen: new Set(branch.seen),
    choices: [...branch.choices],
  };
}

function take(branch: Branch, { change, literals }: Way): boolean {
  if (change?.(branch.facts) === false) return false;
  branch.pending.push(...(literals ?? []).toReversed());
  return true;
}
