/** A chat whose first generation begins at a hold of an earlier process: its cells are found by the prompt's tokens, if anywhere. */

import { messagesOf } from "../chat/hold/continuation.ts";
import { noUsage } from "../engine/generation.ts";
import type {
  ChatEvent,
  ChatGeneration,
  ChatMessage,
  ChatRequest,
  PromptRequest,
  ResumeLimits,
  ToolOutput,
} from "../chat/types.ts";
import type { HeldRound } from "../tools/oversight.ts";
import type { AgentModel } from "./types.ts";

export class HeldChat {
  readonly #chat: AgentModel["chat"];
  readonly #onResume: () => Promise<void>;
  #round: HeldRound | null;

  /** @param onResume called before the model goes on */
  constructor(chat: AgentModel["chat"], round: HeldRound, onResume: () => Promise<void>) {
    this.#chat = chat;
    this.#round = round;
    this.#onResume = onResume;
  }

  countPromptTokens(request: PromptRequest, options?: { mayExceed?: boolean }): Promise<number> {
    return this.#chat.countPromptTokens(request, options);
  }

  generate(request: ChatRequest): ChatGeneration {
    const round = this.#round;
    this.#round = null;
    if (round === null) return this.#chat.generate(request);
    return new HeldGeneration(request, round, async (next) => {
      await this.#onResume();
      return this.#chat.generate(next);
    });
  }
}

type Next = { generation: ChatGeneration } | { reason: "cancelled" | "tool_calls" };

class HeldGeneration implements ChatGeneration {
  readonly #request: ChatRequest;
  readonly #round: HeldRound;
  readonly #begin: (request: ChatRequest) => Promise<ChatGeneration>;
  readonly #next: Promise<Next>;
  #goOn: (next: Next) => void = () => {};
  #generation: ChatGeneration | null = null;

  constructor(
    request: ChatRequest,
    round: HeldRound,
    begin: (request: ChatRequest) => Promise<ChatGeneration>,
  ) {
    this.#request = request;
    this.#round = round;
    this.#begin = begin;
    this.#next = new Promise((resolve) => (this.#goOn = resolve));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatEvent, void, void> {
    const { signal } = this.#request;
    signal?.addEventListener("abort", () => this.#goOn({ reason: "cancelled" }), { once: true });
    if (signal?.aborted === true) this.#goOn({ reason: "cancelled" });
    const calls = [...this.#round.calls];
    yield { type: "hold", calls, usage: noUsage };
    const next = await this.#next;
    if ("generation" in next) return yield* next.generation;
    const { reason } = next;
    yield { type: "finish", reason, calls: reason === "tool_calls" ? calls : [], usage: noUsage };
  }

  extend(output: ToolOutput, isWhole: boolean): void {
    this.#generation?.extend(output, isWhole);
  }

  async resume(outputs: ToolOutput[], limits: ResumeLimits = {}): Promise<boolean> {
    if (this.#generation !== null) return await this.#generation.resume(outputs, limits);
    this.#generation = await this.#begin(withResults(this.#request, this.#round, outputs, limits));
    this.#goOn({ generation: this.#generation });
    return false;
  }

  release(): void {
    if (this.#generation !== null) this.#generation.release();
    else this.#goOn({ reason: "tool_calls" });
  }

  cancel(): void {
    this.#generation?.cancel();
    this.#goOn({ reason: "cancelled" });
  }
}

function withResults(
  request: ChatRequest,
  { messages, heldTurn = null, written }: HeldRound,
  outputs: readonly ToolOutput[],
  { callable, say }: ResumeLimits,
): ChatRequest {
  const said: ChatMessage[] = say === undefined ? [] : [{ role: "user", content: say }];
  const all = [...request.messages, ...messages, ...messagesOf(outputs), ...said];
  const next = { ...request, messages: all, heldTurn, written };
  if (callable === undefined) return next;
  return callable.length === 0
    ? { ...next, toolMode: "none" }
    : { ...next, guidance: { ...request.guidance!, allowed: callable } };
}
