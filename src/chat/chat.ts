/** The chat layer's door: messages and tools in, content, reasoning and calls out. */

import { type GenerationContext, RunningChat } from "./answer/chat-generation.ts";
import { ConstraintMaker } from "../guidance/output-constraints.ts";
import { Continuer } from "./hold/continuation.ts";
import { PromptBuilder } from "./prompt/prompt.ts";
import { SpliceStore } from "./prompt/splice-store.ts";
import type { ReasoningDefault } from "./template/reasoning-switch.ts";
import type {
  ChatCounters,
  ChatEngine,
  ChatGeneration,
  ChatRequest,
  Logger,
  PromptRequest,
} from "./types.ts";

export interface ChatOptions {
  logger?: Logger | undefined;
  /** A Jinja template that replaces the model's own. */
  template?: string | undefined;
  /** The form in which the model writes tool calls, by name. Default: found from the template. */
  toolFormat?: string | undefined;
  /** Whether the model thinks where a request does not say. Default `auto`: as llama-server, which asks for it. */
  reasoning?: ReasoningDefault | undefined;
  /** How long an external round's cells wait for the client's return. Default 5 minutes. */
  externalLeaseMs?: number | undefined;
  /** An answer that writes the same tokens over and over is stopped. Default true. */
  stopsRepetition?: boolean | undefined;
  /** Where generated turns are remembered, for returning conversations. Default: here, as long as this is there. */
  turns?: SpliceStore | undefined;
}

export class Chat {
  readonly #prompts: PromptBuilder;
  readonly #context: GenerationContext;

  /**
   * @throws FermataError template_error (it does not parse) | invalid_option (there is no such format)
   */
  constructor(engine: ChatEngine, options: ChatOptions = {}) {
    this.#prompts = new PromptBuilder(engine, {
      template: options.template,
      toolFormat: options.toolFormat,
      reasoning: options.reasoning,
      turns: options.turns ?? new SpliceStore(),
    });
    this.#context = {
      engine,
      prompts: this.#prompts,
      constraints: new ConstraintMaker({
        syntax: this.#prompts.format.syntax,
        markers: this.#prompts.reasoning,
        controls: engine.model.specialTokens.filter(({ kind }) => kind === "control"),
      }),
      continuer: new Continuer(engine, this.#prompts),
      counters: {
        rerenders: 0,
        splices: 0,
        resumes: 0,
        truncatedResults: 0,
        unextendedHolds: 0,
      },
      logger: options.logger,
      externalLeaseMs: options.externalLeaseMs ?? 5 * 60_000,
      stopsRepetition: options.stopsRepetition ?? true,
    };
  }

  get counters(): Readonly<ChatCounters> {
    return this.#context.counters;
  }

  /** Name of the tool-call format in use. */
  get toolFormat(): string {
    return this.#prompts.format.name;
  }

  /** Of the template, in Jinja; null: there is none. */
  get templateSource(): string | null {
    return this.#prompts.template.source;
  }

  /** False: the model has no template, and none was given. Nothing can be generated here. */
  get hasTemplate(): boolean {
    return this.#prompts.template.exists;
  }

  /** Bytes of the tokens of earlier turns, and how many there may be. */
  get turnMemory(): { used: number; limit: number } {
    const { bytes: used, maxBytes: limit } = this.#prompts.turns;
    return { used, limit };
  }

  /** The template can switch thinking on or off. */
  get mayThink(): boolean {
    return this.#prompts.template.mayThink;
  }

  /** A turn of the template may have several calls. */
  get takesSeveralCalls(): boolean {
    return this.#prompts.template.takesSeveralCalls;
  }

  /** False: the template has no section for tools, so a generic prompt in the system message tells them. */
  get hasToolSection(): boolean {
    return this.#prompts.template.hasToolSection;
  }

  /**
   * Starts when it is first iterated. A missing template, one that refuses the messages and a prompt that is too
   * long are thrown by the first `next()`.
   */
  generate(request: ChatRequest): ChatGeneration {
    return new RunningChat(request, this.#context);
  }

  /**
   * The prompt as `generate` would render it, special tokens spelled.
   * @throws FermataError model_without_template | template_error | context_length_exceeded (more messages than the
   *   context has tokens)
   */
  async promptText(request: Omit<PromptRequest, "owner">): Promise<string> {
    return await this.#prompts.text(request);
  }

  /** A text in which the tokenizer recognizes no special token, and its guard. */
  guardText(text: string): { text: string; guard: string } {
    return this.#prompts.template.guardContent(text);
  }

  /**
   * Tokens of the prompt as `generate` would submit it. `mayExceed`: it may be longer than the context.
   * @throws as its first `next()`
   */
  async countPromptTokens(request: PromptRequest, { mayExceed = false } = {}): Promise<number> {
    const prompt = mayExceed
      ? this.#prompts.buildOfAnyLength(request)
      : this.#prompts.build(request);
    return (await prompt).tokens.length;
  }
}
