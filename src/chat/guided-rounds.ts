/** The grammar of each round of an answer, compiled, and what is checked where no mask held. */

import type { Grammar, GrammarSource, Sampling } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import { Guide } from "../guidance/guide.ts";
import type { Guidance } from "../guidance/types.ts";
import type { Fault } from "../guidance/validator.ts";
import type { ChatEngine } from "./chat-engine.ts";
import type { PromptBuilder } from "./prompt.ts";
import { documentField } from "./text-grammar.ts";
import type { ChatRequest, ToolDefinition } from "./types.ts";

const free: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };

/** A script says its tokens whatever a grammar says. */
function isScripted({ script, samplesAfterScript }: Sampling): boolean {
  return script !== undefined && samplesAfterScript !== true;
}

/** How long is looked for the parts that the engine refuses; what is left is given up unseen. */
const searchMs = 300;
const anything: GrammarSource = { kind: "lark", text: 'start: "a"\n' };

export class GuidedRounds {
  readonly #engine: ChatEngine;
  readonly #guide: Guide | null;
  /** The request's field that asks for what only masks can give. */
  readonly #demand: string | null;
  #count = 0;
  /** This round has a grammar. */
  #isMasked = false;

  private constructor(engine: ChatEngine, guide: Guide | null, demand: string | null) {
    this.#engine = engine;
    this.#guide = guide;
    this.#demand = demand;
  }

  /** @throws FermataError of status 400 that names what cannot be enforced; queue_full */
  static async create(
    request: ChatRequest,
    engine: ChatEngine,
    prompts: PromptBuilder,
  ): Promise<GuidedRounds> {
    const { toolMode, sampling, guidance = free, maxTokens } = request;
    const tools = toolMode === "none" ? [] : request.tools;
    const isFree = tools.length === 0 && guidance.document === undefined;
    if (isFree || isScripted(sampling)) return new GuidedRounds(engine, null, null);
    const guide = await Guide.create({
      syntax: prompts.format.syntax,
      markers: prompts.reasoning,
      controls: engine.model.specialTokens.filter(({ kind }) => kind === "control"),
      tools,
      // A call more than the template takes could never be answered.
      guidance: {
        ...guidance,
        parallel: guidance.parallel && prompts.template.takesSeveralCalls,
      },
      budget: maxTokens ?? engine.cache.cellsPerSequence,
    });
    return new GuidedRounds(engine, guide, demandOf(guidance, tools));
  }

  /**
   * For the round that begins now; null: anything may be written.
   * @param callable names of the tools that may still be called; undefined: as the request says
   * @throws FermataError of status 400
   */
  async next(
    reasoning: "no" | "split" | "open",
    callable?: readonly string[],
  ): Promise<Grammar | null> {
    const grammar = await this.#compileNext(reasoning, callable);
    this.#isMasked = grammar !== null;
    return grammar;
  }

  async #compileNext(
    reasoning: "no" | "split" | "open",
    callable?: readonly string[],
  ): Promise<Grammar | null> {
    const index = this.#count++;
    const source = this.#guide?.round(index, reasoning, callable) ?? null;
    if (source === null || this.#guide === null) return null;
    try {
      return await this.#engine.compileGrammar(source);
    } catch (error) {
      if (!isRefused(error)) throw error;
      // A build without masks: calls are then validated only, unless more was asked for.
      if ((await this.#problemOf(anything)) !== null) {
        if (this.#demand === null) return null;
        throw new FermataError(error.code, error.message, { param: this.#demand, cause: error });
      }
      await this.#giveUpCulprits(this.#guide, error);
      const relaxed = this.#guide.round(index, reasoning, callable);
      return relaxed === null ? null : await this.#engine.compileGrammar(relaxed);
    }
  }

  /** What a finished call of this round gets wrong; null: nothing. */
  async checkCall(call: { name: string; arguments: string }): Promise<Fault | null> {
    return (await this.#guide?.checkCall(call, this.#isMasked)) ?? null;
  }

  async checkDocument(text: string): Promise<Fault | null> {
    return (await this.#guide?.checkDocument(text)) ?? null;
  }

  /** The engine refused the whole; which parts would it refuse alone? */
  async #giveUpCulprits(guide: Guide, refusal: FermataError): Promise<void> {
    let found = false;
    const deadline = performance.now() + searchMs;
    for (const part of guide.parts()) {
      const problem =
        performance.now() < deadline
          ? await this.#problemOf(part.source)
          : "the grammar is too large to look at each of its parts";
      if (problem === null) continue;
      found = true;
      part.giveUp(problem);
    }
    if (!found) throw refusal;
  }

  async #problemOf(source: GrammarSource): Promise<string | null> {
    try {
      await this.#engine.compileGrammar(source);
      return null;
    } catch (error) {
      if (isRefused(error)) return error.message;
      throw error;
    }
  }
}

function demandOf(
  { document, toolChoice }: Guidance,
  tools: readonly ToolDefinition[],
): string | null {
  if (document !== undefined) return documentField(document);
  if (toolChoice === "required") return "tool_choice";
  return tools.some((tool) => tool.strict === true) ? "tools" : null;
}

function isRefused(error: unknown): error is FermataError {
  return error instanceof FermataError && error.code === "invalid_grammar";
}
