/** From tool outputs to the tokens that continue a held generation. */

import type { ChatEngine } from "./chat-engine.ts";
import type { PromptBuilder, RenderScope } from "./prompt.ts";
import type { Round } from "./round.ts";
import { type GeneratedTurn, joinAtEndToken } from "./suffix.ts";
import type { RenderMessage, Rendering } from "./template.ts";
import { fitOutputs } from "./tool-results.ts";
import type { ChatMessage, ToolOutput } from "./types.ts";

/** `resume`: only the results are new. `rerender`: the template rewrote what came before; all is given. */
export interface Continuation {
  kind: "resume" | "rerender";
  tokens: Int32Array;
  keepPending: boolean;
  rendering: Rendering;
  messages: readonly RenderMessage[];
  truncatedCount: number;
}

export interface ContinueRequest {
  scope: RenderScope;
  round: Round;
  turn: GeneratedTurn;
  outputs: ToolOutput[];
  /** In the cache; the pending token is not. */
  heldTokens: number;
  maxTokens: number | undefined;
}

interface Draft extends Omit<Continuation, "truncatedCount"> {
  /** The whole sequence's. */
  tokenCount: number;
}

/** An answer of this size, or of a quarter of the context, is left room for. */
const ANSWER_RESERVE = 1024;

export class Continuer {
  readonly #engine: ChatEngine;
  readonly #prompts: PromptBuilder;

  constructor({ engine, prompts }: { engine: ChatEngine; prompts: PromptBuilder }) {
    this.#engine = engine;
    this.#prompts = prompts;
  }

  /** Results that do not fit are cut. @returns null when nothing fits @throws FermataError template_error */
  async continue(request: ContinueRequest): Promise<Continuation | null> {
    const contextSize = this.#engine.cache.cellsPerSequence;
    const reserve = Math.min(
      ANSWER_RESERVE,
      Math.floor(contextSize / 4),
      request.maxTokens ?? Infinity,
    );
    const fitted = await fitOutputs(request.outputs, {
      measure: (outputs) => this.#draft(request, outputs),
      countTokens: async (text) => {
        const guarded = this.#prompts.template.guardContent(text);
        return (await this.#engine.tokenize(guarded.text, guarded.guard, false)).length;
      },
      comfortable: contextSize - reserve,
      most: contextSize - 1,
    });
    return fitted === null ? null : { ...fitted.built, truncatedCount: fitted.truncatedCount };
  }

  async #draft(request: ContinueRequest, outputs: ToolOutput[]): Promise<Draft> {
    const results = outputs.map(({ callId, name, content }): ChatMessage => ({
      role: "tool",
      toolCallId: callId,
      name,
      content,
    }));
    return (await this.#resume(request, results)) ?? (await this.#rerender(request, results));
  }

  async #resume(
    { scope, round, turn, heldTokens }: ContinueRequest,
    results: ChatMessage[],
  ): Promise<Draft | null> {
    const suffix = this.#prompts.suffixes.derive({
      tools: scope.tools,
      variables: scope.templateVariables,
      prompt: round.rendering,
      before: round.before,
      turn,
      after: results,
    });
    if (suffix === null) return null;
    const { keepEnd, text } = joinAtEndToken(suffix.text, turn.endToken);
    const tokens = await this.#engine.tokenize(text, suffix.guard, false);
    return {
      kind: "resume",
      tokens,
      keepPending: keepEnd,
      rendering: suffix.rendering,
      messages: [...round.before, suffix.turn, ...results],
      tokenCount: heldTokens + (keepEnd ? 1 : 0) + tokens.length,
    };
  }

  async #rerender({ scope, round, turn }: ContinueRequest, results: ChatMessage[]): Promise<Draft> {
    const before = round.before.map((message) =>
      message.role === "sentinel" ? message.standsFor : message,
    );
    const messages = [...before, turn.message, ...results];
    const { tokens, rendering } = await this.#prompts.render(messages, scope);
    return {
      kind: "rerender",
      tokens,
      keepPending: false,
      rendering,
      messages,
      tokenCount: tokens.length,
    };
  }
}
