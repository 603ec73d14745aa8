/** Tokens of a run, shared with the runs below it: what is reserved for one of them, no other gets. */

import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  PromptRequest,
  ResumeLimits,
  ToolOutput,
} from "../chat/types.ts";
import type { AgentModel } from "./types.ts";

/** Less is not worth a sub-agent. */
const minimumShare = 16;

export class TokenBudget {
  readonly limit: number;
  readonly #parent: TokenBudget | null;
  /** By the run itself. */
  #own = 0;
  /** By runs below that have ended. */
  #below = 0;
  #reserved = 0;

  constructor(limit = Infinity, parent: TokenBudget | null = null) {
    this.limit = limit;
    this.#parent = parent;
  }

  get spent(): number {
    return this.#own + this.#below;
  }

  /** For the run itself, and for the next run below it. Infinity: there is no limit. */
  get left(): number {
    return Math.max(0, this.limit - this.spent - this.#reserved);
  }

  /** @param tokens that the run itself has generated since the last call, and its tools with its model */
  addOwn(tokens: number): void {
    this.#own += tokens;
  }

  /**
   * A run below gets its own limit, but no more than half of what is left: whoever delegates has to answer
   * yet. Null: too little is left. Give it back with `close`.
   */
  reserve(limit = Infinity): TokenBudget | null {
    const share = Math.min(limit, Math.floor(this.left / 2));
    if (share < Math.min(limit, minimumShare)) return null;
    if (share !== Infinity) this.#reserved += share;
    return new TokenBudget(share, this);
  }

  /** The run has ended. To be called once. */
  close(): void {
    if (this.#parent === null) return;
    if (this.limit !== Infinity) this.#parent.#reserved -= this.limit;
    this.#parent.#below += this.spent;
  }
}

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
  /** Of its tokens, all rounds. */
  #counted = 0;

  constructor(generation: ChatGeneration, budget: TokenBudget) {
    this.#generation = generation;
    this.#budget = budget;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatEvent, void, void> {
    for await (const event of this.#generation) {
      if (event.type === "hold" || event.type === "finish") {
        this.#budget.addOwn(event.usage.generatedTokens - this.#counted);
        this.#counted = event.usage.generatedTokens;
      }
      yield event;
    }
  }

  extend(output: ToolOutput, isWhole: boolean): void {
    this.#generation.extend(output, isWhole);
  }

  resume(outputs: ToolOutput[], limits: ResumeLimits = {}): Promise<boolean> {
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
