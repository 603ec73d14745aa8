/** One answer over all its rounds: drives the engine's generation, parses what it says, resumes it. */

import type { EngineUsage, Generation, GenerationEvent } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import type { ChatEngine, Logger } from "./chat-engine.ts";
import { type Continuation, Continuer } from "./continuation.ts";
import { pauseTriggersOf } from "./formats/format.ts";
import type { Prompt, PromptBuilder } from "./prompt.ts";
import { Round } from "./round.ts";
import type { RenderMessage, Rendering } from "./template.ts";
import type { ChatEvent, ChatGeneration, ChatRequest, FinishReason, ToolCall, ToolOutput } from "./types.ts";
import { UsageSum } from "./usage.ts";

export interface GenerationContext {
  engine: ChatEngine;
  prompts: PromptBuilder;
  counters: { rerenders: number; splices: number; resumes: number; truncatedResults: number };
  logger: Logger | undefined;
  externalLeaseMs: number;
}

/** A hold that waits for `resume`. */
interface Hold {
  calls: readonly ToolCall[];
  pendingToken: boolean;
  /** `resume` was called and is at work. */
  answering: boolean;
  /** `full`: no result fits, not even cut. */
  answer: (next: Continuation | "full" | "cancelled") => void;
}

type FinishEvent = Extract<ChatEvent, { type: "finish" }>;
type EngineHold = Extract<GenerationEvent, { type: "hold" }>;

export class RunningChat implements ChatGeneration {
  readonly #request: ChatRequest;
  readonly #context: GenerationContext;
  readonly #usage = new UsageSum();
  #generation: Generation | null = null;
  #events: AsyncIterator<GenerationEvent> | null = null;
  #prompt: Prompt | null = null;
  #round: Round | null = null;
  #roundCount = 0;
  #hold: Hold | null = null;
  #cancelled = false;

  constructor(request: ChatRequest, context: GenerationContext) {
    this.#request = request;
    this.#context = context;
  }

  [Symbol.asyncIterator](): AsyncIterator<ChatEvent> {
    return this.#run();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#generation?.cancel();
    this.#hold?.answer("cancelled");
  }

  /** @throws FermataError not_held | invalid_value (a call has no output) | template_error */
  async resume(outputs: ToolOutput[]): Promise<void> {
    const hold = this.#hold;
    const [generation, round] = [this.#generation, this.#round];
    if (hold === null || hold.answering || generation === null || round === null) {
      throw new FermataError("not_held", "There is no hold to resume.");
    }
    const ordered = hold.calls.map((call) => {
      const output = outputs.find((candidate) => candidate.callId === call.id);
      if (output === undefined) throw new FermataError("invalid_value", `The call ${call.id} has no output.`);
      return output;
    });
    hold.answering = true;
    const endToken = hold.pendingToken ? this.#context.prompts.endTokenOf(generation.tokens) : "";
    const next = await new Continuer(this.#context).continue({
      tools: this.#request.tools,
      turn: round.turn(endToken),
      round,
      outputs: ordered,
      heldTokens: generation.tokens.length - (hold.pendingToken ? 1 : 0),
      maxTokens: this.#remainingTokens(),
    });
    hold.answer(next ?? "full");
  }

  async *#run(): AsyncGenerator<ChatEvent, void, void> {
    const onAbort = (): void => this.cancel();
    this.#request.signal?.addEventListener("abort", onAbort, { once: true });
    try {
      yield* this.#rounds();
    } finally {
      this.#request.signal?.removeEventListener("abort", onAbort);
      this.#generation?.cancel();
      await this.#events?.return?.();
    }
  }

  async *#rounds(): AsyncGenerator<ChatEvent, void, void> {
    const { prompts, counters } = this.#context;
    const prompt = await prompts.build(this.#request);
    if (prompt.spliced) counters.splices += 1;
    this.#prompt = prompt;
    this.#start(prompt.tokens);
    this.#beginRound(prompt.rendering, prompt.messages);
    for (;;) {
      const event = await this.#next();
      if (event.type === "progress") yield event;
      else if (event.type === "text") yield* this.#currentRound.push(event.text);
      else if (event.type === "hold") {
        const finish = yield* this.#onHold(event);
        if (finish === null) continue;
        yield finish;
        return;
      } else if (event.type === "finish") {
        yield* this.#onFinish(event);
        return;
      }
    }
  }

  async *#onHold(event: EngineHold): AsyncGenerator<ChatEvent, FinishEvent | null, void> {
    this.#usage.update(event.usage);
    const round = this.#currentRound;
    if (event.reason === "text_after_call" && (round.inCall || round.calls.length === 0)) {
      if (this.#remainingTokens() === 0) return await this.#giveUp();
      await this.#goOn();
      return null;
    }
    yield* round.finish(true);
    if (round.calls.length === 0 || this.#request.toolMode === "external") {
      this.#remember(event.pendingToken);
      await this.#release();
      return this.#finish(round.calls.length === 0 ? "stop" : "tool_calls");
    }
    if (this.#remainingTokens() === 0) return await this.#giveUp();

    const answered = this.#waitForAnswer(round.calls, event.pendingToken);
    if (this.#cancelled) this.#hold?.answer("cancelled");
    yield { type: "hold", calls: [...round.calls], usage: this.#usage.total };
    const next = await answered;
    if (next === "full") return await this.#giveUp();
    if (next !== "cancelled") await this.#take(next);
    return null;
  }

  async *#onFinish(event: Extract<GenerationEvent, { type: "finish" }>): AsyncGenerator<ChatEvent, void, void> {
    this.#usage.update(event.usage);
    const natural = event.reason === "end" || event.reason === "stop_string" || event.reason === "released";
    yield* this.#currentRound.finish(natural);
    if (event.reason === "end") this.#remember(true);
    if (event.reason === "cancelled" || event.reason === "length") yield this.#finish(event.reason);
    else yield this.#finish(this.#currentRound.calls.length === 0 ? "stop" : "tool_calls");
  }

  #waitForAnswer(calls: readonly ToolCall[], pendingToken: boolean): Promise<Continuation | "full" | "cancelled"> {
    return new Promise((resolve) => {
      const answer: Hold["answer"] = (next) => {
        this.#hold = null;
        resolve(next);
      };
      this.#hold = { calls, pendingToken, answering: false, answer };
    });
  }

  /** Continues as the tool results say: in place, or as a new generation if the template rewrote history. */
  async #take(next: Continuation): Promise<void> {
    const { counters, logger } = this.#context;
    counters.truncatedResults += next.truncatedCount;
    if (next.kind === "resume") {
      counters.resumes += 1;
      this.#generation?.resume({ tokens: next.tokens, keepPending: next.keepPending, maxTokens: this.#remainingTokens() });
    } else {
      counters.rerenders += 1;
      logger?.warn({ tokens: next.tokens.length, rerenders: counters.rerenders }, "the template rewrites history: re-rendered");
      await this.#release();
      this.#usage.next(false);
      this.#start(next.tokens);
    }
    this.#beginRound(next.rendering, next.messages);
  }

  /** The engine saw a call's end where the text has none (a tag in a string or in reasoning): same text, new watch. */
  async #goOn(): Promise<void> {
    const tokens = Int32Array.from(this.#generation?.tokens ?? []);
    await this.#release();
    this.#usage.next(true);
    this.#start(tokens);
  }

  #start(tokens: Int32Array): void {
    const { engine, prompts, externalLeaseMs } = this.#context;
    const { sampling, stop, toolMode, signal } = this.#request;
    this.#generation = engine.generate({
      prompt: tokens,
      sampling,
      stop,
      maxTokens: this.#remainingTokens(),
      pause: this.#looksForCalls ? pauseTriggersOf(prompts.format) : undefined,
      leaseMs: toolMode === "external" ? externalLeaseMs : undefined,
      signal,
    });
    this.#events = this.#generation[Symbol.asyncIterator]();
    if (this.#cancelled) this.#generation.cancel();
  }

  #beginRound(rendering: Rendering, before: readonly RenderMessage[]): void {
    const { prompts } = this.#context;
    this.#roundCount += 1;
    this.#round = new Round({
      rendering,
      before,
      format: prompts.format,
      reasoning: prompts.reasoningAfter(rendering),
      offered: this.#looksForCalls ? new Set(this.#request.tools.map((tool) => tool.name)) : null,
    });
  }

  async #next(): Promise<GenerationEvent> {
    const result = await this.#events?.next();
    if (result === undefined || result.done) {
      throw new FermataError("internal_error", "The generation ended without a finish event.");
    }
    return result.value;
  }

  async #release(): Promise<void> {
    this.#generation?.release();
    for (let event = await this.#next(); ; event = await this.#next()) {
      if (event.type !== "finish") continue;
      this.#usage.update(event.usage);
      return;
    }
  }

  /** No room is left for an answer: tools are not run for nothing. */
  async #giveUp(): Promise<FinishEvent> {
    await this.#release();
    return this.#finish("length");
  }

  /** An answer of several rounds is one message to the client and several to the template: not the same text. */
  #remember(endsWithToken: boolean): void {
    const [generation, round, prompt] = [this.#generation, this.#round, this.#prompt];
    if (generation === null || round === null || prompt === null || this.#roundCount > 1 || !round.isWhole) return;
    const endToken = endsWithToken ? this.#context.prompts.endTokenOf(generation.tokens) : "";
    const scope = { ...this.#request, messages: [...prompt.messages] };
    const tokens = Int32Array.from(generation.tokens);
    this.#context.prompts.remember(scope, { prompt: prompt.rendering, turn: round.turn(endToken), tokens });
  }

  #finish(reason: FinishReason): FinishEvent {
    const calls = this.#request.toolMode === "external" ? [...this.#currentRound.calls] : [];
    const usage: EngineUsage = this.#usage.total;
    return { type: "finish", reason: reason === "tool_calls" && calls.length === 0 ? "stop" : reason, calls, usage };
  }

  #remainingTokens(): number | undefined {
    const { maxTokens } = this.#request;
    return maxTokens === undefined ? undefined : Math.max(0, maxTokens - this.#usage.total.generatedTokens);
  }

  get #looksForCalls(): boolean {
    return this.#request.toolMode !== "none" && this.#request.tools.length > 0;
  }

  get #currentRound(): Round {
    if (this.#round === null) throw new FermataError("internal_error", "No round has begun.");
    return this.#round;
  }
}
