/** A chat that generates within a token budget, whatever runs below it spend of it. */

import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  PromptRequest,
  ResumeLimits,
  ToolOutput,
} from "../chat/types.ts";
import type { TokenBudget } from "./token-budget.ts";
import type { AgentModel } from "./types.ts";

type AgentChat = AgentModel["chat"];

export class MeteredChat implements AgentChat {
  readonly #chat: AgentChat;
  readonly #budget: TokenBudget;

  constructor(chat: AgentChat, budget: TokenBudget) {
    this.#chat = chat;
    this.#budget = budget;
  }

  generate(request: ChatRequest): ChatGeneration {
    const maxTokens = atMost(request.maxTokens, this.#budget.left);
    return new MeteredGeneration(this.#chat.generate({ ...request, maxTokens }), this.#budget);
  }

  countPromptTokens(request: PromptRequest, options?: { mayExceed?: boolean }): Promise<number> {
    return this.#chat.countPromptTokens(request, options);
  }
}

class MeteredGeneration implements ChatGeneration {
  readonly #generation: ChatGeneration;
  readonly #budget: TokenBudget;

  constructor(generation: ChatGeneration, budget: TokenBudget) {
    this.#generation = generation;
    this.#budget = budget;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatEvent, void, void> {
    for await (const event of this.#generation) {
      if (event.type === "hold" || event.type === "finish")
        this.#budget.setOwn(event.usage.generatedTokens);
      yield event;
    }
  }

  extend(output: ToolOutput, isWhole: boolean): void {
    this.#generation.extend(output, isWhole);
  }

  resume(outputs: ToolOutput[], limits: ResumeLimits = {}): Promise<void> {
    const maxTokens = atMost(limits.maxTokens, this.#budget.left);
    return this.#generation.resume(outputs, { ...limits, maxTokens });
  }

  release(): void {
    this.#generation.release();
  }

  cancel(): void {
    this.#generation.cancel();
  }
}

function atMost(given: number | undefined, left: number): number | undefined {
  const least = Math.min(given ?? Infinity, left);
  return least === Infinity ? undefined : least;
}
