/**
 * A conjunction of subschemas, some of them negated, as alternatives for one JSON type. Keywords that
 * no mask can hold are told as issues and widen the result: what is left never refuses a valid value
 * because of them. What is not an issue is exact.
 */

import { FermataError } from "../../errors.ts";
import { applicators } from "./applicators.ts";
import {
  arrayKeywords,
  dependencyKeywords,
  dependencyWays,
  failedDependencyWays,
  objectKeywords,
} from "./container-keywords.ts";
import type { SchemaDocument, SchemaNode } from "./document.ts";
import { Facts, type Literal } from "./facts.ts";
import { type Keyword, type KeywordContext, type Way, Unsupported, never } from "./keywords.ts";
import { limitKeywords } from "./limit-keywords.ts";
import { scalarKeywords } from "./scalar-keywords.ts";
import type { JsonObject, JsonType, SchemaIssue } from "./types.ts";

const keywords = new Map<string, Keyword>(
  Object.entries({
    ...applicators,
    ...limitKeywords,
    ...scalarKeywords,
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
}

export interface ExpandHooks {
  issue(issue: SchemaIssue): void;
  mayHold(type: JsonType, literals: readonly Literal[]): boolean;
  /** Literals that may be looked at for one document, probes included. */
  maxSteps: number;
}

export class Expander {
  readonly #document: SchemaDocument;
  readonly #hooks: ExpandHooks;
  #steps = 0;

  constructor(document: SchemaDocument, hooks: ExpandHooks) {
    this.#document = document;
    this.#hooks = hooks;
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
      const { length } = choice.ways;
      if (complete.length + branches.length === 0 && length <= maxAlternatives.union)
        most = Math.max(most, length);
      if (complete.length + branches.length + length > most) {
        const { node, keyword } = choice;
        const reason = "makes too many combinations with the others";
        this.#hooks.issue({ path: node.path, keyword, reason });
        branches.push(branch);
        continue;
      }
      for (const way of choice.ways.toReversed()) {
        const fork = forkOf(branch);
        if (take(fork, way)) branches.push(fork);
      }
    }
    return complete;
  }

  /** Works off what is certain. @returns false when the branch cannot be */
  #settle(branch: Branch): boolean {
    for (let literal = branch.pending.pop(); literal; literal = branch.pending.pop()) {
      if (++this.#steps > this.#hooks.maxSteps)
        throw new FermataError(
          "schema_too_large",
          "The schema combines its parts in too many ways. Send a simpler one.",
        );
      const key = `${literal.holds ? "+" : "-"}${literal.node.id}/${literal.scopes.join()}`;
      if (branch.seen.has(key)) continue;
      branch.seen.add(key);
      if (!this.#unfold(branch, literal)) return false;
    }
    return true;
  }

  #unfold(branch: Branch, literal: Literal): boolean {
    const { schema } = literal.node;
    if (typeof schema === "boolean") return schema === literal.holds;
    return literal.holds
      ? this.#unfoldHolding(branch, literal, schema)
      : this.#unfoldFailing(branch, literal, schema);
  }

  #unfoldHolding(branch: Branch, literal: Literal, schema: JsonObject): boolean {
    const context = this.#context(branch, literal, schema);
    // Reversed, because the pending ones are a stack and properties keep the order of the schema.
    const literals: Literal[] = [];
    for (const [keyword, value] of this.#keywordsOf(schema)) {
      for (const ways of this.#waysOf(keyword, value, context)) {
        const [way] = ways;
        if (way === undefined) return false;
        if (ways.length > 1) branch.choices.push({ ways, node: literal.node, keyword });
        else {
          if (way.change?.(branch.facts) === false) return false;
          literals.push(...(way.literals ?? []));
        }
      }
    }
    branch.pending.push(...literals.toReversed());
    return true;
  }

  /** The conjunction fails where one keyword does. */
  #unfoldFailing(branch: Branch, literal: Literal, schema: JsonObject): boolean {
    const context = this.#context(branch, literal, schema);
    const ways: Way[] = [];
    for (const [keyword, value] of this.#keywordsOf(schema)) {
      try {
        ways.push(...failedWays(keyword, value, context));
      } catch (error) {
        if (!(error instanceof Unsupported)) throw error;
        this.#hooks.issue({ path: literal.node.path, keyword, reason: `${error.reason}` });
        return true;
      }
    }
    if (ways.some((way) => way.literals === undefined && way.change === undefined)) return true;
    const [way] = ways;
    if (way === undefined) return false;
    if (ways.length === 1) return take(branch, way);
    branch.choices.push({ ways, node: literal.node, keyword: "not" });
    return true;
  }

  #keywordsOf(schema: JsonObject): [string, unknown][] {
    // In draft 7 nothing counts beside a reference.
    if (this.#document.draft === "draft-07" && "$ref" in schema) return [["$ref", schema["$ref"]]];
    return Object.entries(schema);
  }

  #waysOf(keyword: string, value: unknown, context: KeywordContext): Way[][] {
    try {
      if (dependencyKeywords.has(keyword))
        return context.type === "object" ? dependencyWays(keyword, value, context) : [];
      const meaning = keywords.get(keyword);
      if (meaning === undefined || !appliesTo(meaning, context.type)) return [];
      return [meaning.holds(value, context)];
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      this.#hooks.issue({ path: context.node.path, keyword, reason: error.reason });
      return [];
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
      scopes: inner,
      literal: (isHeld, ...keys) => ({
        node: document.child(node, ...keys),
        holds: isHeld,
        scopes: isHeld ? inner : [],
      }),
      mayHold: (literals) => this.#hooks.mayHold(type, literals),
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
      contains: false,
    });
    // What the outer ones see of this node is everything, once the inner one has spoken.
    for (const id of scopes) {
      const outer = facts.scopes[id]!;
      if (hasProperties) outer.allProperties = true;
      if (hasItems) outer.allItems = true;
    }
    return [...scopes, facts.scopes.length - 1];
  }
}

function failedWays(keyword: string, value: unknown, context: KeywordContext): Way[] {
  if (dependencyKeywords.has(keyword))
    return context.type === "object" ? failedDependencyWays(keyword, value, context) : never;
  const meaning = keywords.get(keyword);
  return meaning === undefined || !appliesTo(meaning, context.type)
    ? never
    : meaning.fails(value, context);
}

function appliesTo({ types }: Keyword, type: JsonType): boolean {
  return types === undefined || types.includes(type);
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
