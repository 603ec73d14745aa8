/** The grammar of each round of an answer, compiled, and what is checked where no mask enforced it. */

import type { Grammar, GrammarSource, Sampling } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import {
  type ConstrainedPart,
  type ConstraintMaker,
  type OutputConstraints,
  isCallable,
} from "../../guidance/output-constraints.ts";
import type { Guidance, RoundReasoning } from "../../guidance/types.ts";
import type { Fault } from "../../guidance/validator.ts";
import type { PromptBuilder } from "../prompt/prompt.ts";
import type { RoundStart } from "./round.ts";
import { documentField } from "./text-grammar.ts";
import type { ChatEngine, ChatRequest, ToolCall, ToolDefinition } from "../types.ts";

const free: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };

/** A script says its tokens whatever a grammar says. */
export function isScripted({ script, samplesAfterScript }: Sampling): boolean {
  return script !== undefined && samplesAfterScript !== true;
}

/** Characters of grammars that are compiled to find what the engine takes; what is left then is validated afterwards. */
const searchCharacters = 8 * 1024 * 1024;
const anything: GrammarSource = { kind: "lark", text: 'start: "a"\n' };

export interface GuidanceContext {
  engine: ChatEngine;
  prompts: PromptBuilder;
  constraints: ConstraintMaker;
}

export class GuidedRounds {
  readonly #engine: ChatEngine;
  readonly #request: ChatRequest;
  /** A round may have several calls. */
  readonly #isParallel: boolean;
  readonly #constraints: OutputConstraints | null;
  /** The request's field that asks for what only masks can give. */
  readonly #demand: string | null;
  #count = 0;
  #isMasked = false;

  private constructor(
    request: ChatRequest,
    { engine, prompts }: GuidanceContext,
    constraints: OutputConstraints | null,
  ) {
    const { guidance = free, tools, toolMode } = request;
    this.#engine = engine;
    this.#request = request;
    this.#isParallel = mayCallMore(guidance, prompts);
    this.#constraints = constraints;
    this.#demand = demandOf(guidance, toolMode === "none" ? [] : tools);
  }

  /** @throws FermataError of status 400 that names what cannot be enforced; queue_full */
  static async create(request: ChatRequest, context: GuidanceContext): Promise<GuidedRounds> {
    const { toolMode, sampling, guidance = free } = request;
    const isOff = toolMode === "none" && request.tools.length > 0;
    const tools = isOff ? onlyShown(request.tools, guidance) : request.tools;
    const isFree = tools.length === 0 && guidance.document === undefined;
    if (isFree || isScripted(sampling)) return new GuidedRounds(request, context, null);
    const constraints = await context.constraints.make({
      tools,
      guidance: {
        ...guidance,
        ...(isOff ? { toolChoice: "none" } : {}),
        parallel: mayCallMore(guidance, context.prompts),
      },
    });
    return new GuidedRounds(request, context, constraints);
  }

  /** This round has a grammar. */
  get isMasked(): boolean {
    return this.#isMasked;
  }

  /**
   * What the parser takes as calls, whatever the grammar constrains. Those that may not be called any more are among them:
   * who runs them knows, and says so.
   */
  get calls(): Pick<RoundStart, "offered" | "takesCall"> {
    const { tools, toolMode, guidance = free } = this.#request;
    if (toolMode === "none" || tools.length === 0) return { offered: null };
    const offered = new Map(
      tools
        .filter(({ name }) => isCallable(name, guidance.allowed))
        .map(({ name, parameters }) => [name, parameters]),
    );
    // A name that is made up between markers: who runs the call tells the model.
    const isCall = (name: string): boolean =>
      offered.has(name) || tools.every((tool) => tool.name !== name);
    return {
      offered,
      takesCall: (name, index) => isCall(name) && (index === 0 || this.#isParallel),
    };
  }

  /**
   * For the round that begins now; null: anything may be written.
   * @param callable names of the tools that may still be called; undefined: as the request says
   * @throws FermataError of status 400
   */
  async next(reasoning: RoundReasoning, callable?: readonly string[]): Promise<Grammar | null> {
    const grammar = await this.#compileNext(reasoning, callable);
    this.#isMasked = grammar !== null;
    return grammar;
  }

  async #compileNext(
    reasoning: RoundReasoning,
    callable?: readonly string[],
  ): Promise<Grammar | null> {
    const index = this.#count++;
    const source = this.#constraints?.round(index, reasoning, callable) ?? null;
    if (source === null || this.#constraints === null) return null;
    const compiled = await this.#compiled(source);
    if (!(compiled instanceof FermataError)) return compiled;
    const { code, message } = compiled;
    const param = this.#demand ?? undefined;
    const refusal = new FermataError(code, message, { param, cause: compiled });
    // A build without masks: calls are then validated only, unless more was asked for.
    if ((await this.#compiled(anything)) instanceof FermataError) {
      if (this.#demand === null) return null;
      throw refusal;
    }
    const constraints = this.#constraints;
    return await this.#enforceWhatFits(
      constraints.parts(),
      () => constraints.round(index, reasoning, callable),
      refusal,
    );
  }

  /**
   * What a finished call of this round gets wrong; null: nothing.
   * @param isGuided it stands in the form that the grammar constrains
   */
  async checkCall(call: ToolCall, isGuided: boolean): Promise<Fault | null> {
    return (await this.#constraints?.checkCall(call, this.#isMasked && isGuided)) ?? null;
  }

  async checkDocument(text: string): Promise<Fault | null> {
    return (await this.#constraints?.checkDocument(text)) ?? null;
  }

  /**
   * The engine refused the whole. Parts are enforced in their order, halves of what it refuses by themselves, as long as
   * it takes them beside those before: which ones depends on the request alone.
   */
  async #enforceWhatFits(
    parts: readonly ConstrainedPart[],
    round: () => GrammarSource | null,
    refusal: FermataError,
  ): Promise<Grammar | null> {
    for (const part of parts) part.isEnforced = false;
    let left = searchCharacters;
    const attempt = async (
      group: readonly ConstrainedPart[],
    ): Promise<Grammar | FermataError | null> => {
      for (const part of group) part.isEnforced = true;
      const source = round();
      left -= source?.text.length ?? 0;
      const result =
        source === null ? null : left < 0 ? tooManyParts() : await this.#compiled(source);
      if (result instanceof FermataError) for (const part of group) part.isEnforced = false;
      return result;
    };
    let grammar = await attempt([]);
    if (grammar instanceof FermataError) throw refusal;
    const groups = halvesOf(parts);
    if (groups.length === 1) groups[0]![0]!.leaveOpen(refusal.message);
    else
      for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
        const result = await attempt(group);
        if (!(result instanceof FermataError)) grammar = result;
        else if (group.length > 1 && left > 0) groups.push(...halvesOf(group));
        else for (const part of group) part.leaveOpen(result.message);
      }
    return grammar;
  }

  async #compiled(source: GrammarSource): Promise<Grammar | FermataError> {
    try {
      return await this.#engine.compileGrammar(source);
    } catch (error) {
      if (error instanceof FermataError && error.code === "invalid_grammar") return error;
      throw error;
    }
  }
}

/** Tools that the prompt has and nobody may call: no text names them, and a document does not anyway. */
function onlyShown(tools: readonly ToolDefinition[], { document }: Guidance): ToolDefinition[] {
  return document === undefined ? tools.map(({ name }) => ({ name, parameters: {} })) : [];
}

/** A call more than the template takes could never be answered. */
function mayCallMore({ parallel }: Guidance, { template }: PromptBuilder): boolean {
  return parallel && template.takesSeveralCalls;
}

function tooManyParts(): FermataError {
  return new FermataError(
    "invalid_grammar",
    "the schemas together are too large, or too many of them are refused",
  );
}

/** The second first: a stack, whose top is the first. */
function halvesOf(parts: readonly ConstrainedPart[]): (readonly ConstrainedPart[])[] {
  const half = Math.ceil(parts.length / 2);
  return parts.length < 2 ? [parts] : [parts.slice(half), parts.slice(0, half)];
}

function demandOf(
  { document, toolChoice }: Guidance,
  tools: readonly ToolDefinition[],
): string | null {
  if (document !== undefined) return documentField(document);
  if (toolChoice === "required") return "tool_choice";
  return tools.some((tool) => tool.strict === true) ? "tools" : null;
}
