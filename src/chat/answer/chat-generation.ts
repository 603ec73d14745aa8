/** One answer over all its rounds: reads the engine's events, parses the text, holds and resumes. */

import type { OutputEvent } from "../parser/text-parser.ts";
import type { GenerationEvent, Grammar } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import { AnswerTokens } from "./answer-tokens.ts";
import type { Continuation, ContinueRequest, Continuer } from "../hold/continuation.ts";
import { ChatHold, type KnownOutput } from "../hold/hold.ts";
import { cancelledEarly, EngineRun, mayRepeatCalls, prepareAnswer } from "./engine-run.ts";
import { guidedFormat } from "../formats/format.ts";
import type { GuidanceContext, GuidedRounds } from "./guided-rounds.ts";
import { type PromptMarks, marksBefore } from "../prompt/marks.ts";
import type { Prompt } from "../prompt/prompt.ts";
import { repeatedCall, repeatedText } from "./repetition.ts";
import { Round } from "./round.ts";
import type { RenderMessage, Rendering } from "../template/template.ts";
import { rememberRound } from "./turn-memory.ts";
import type { ReasoningStart } from "../template/reasoning-switch.ts";
import type {
  ChatCounters,
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  FinishReason,
  HeldTurn,
  Logger,
  ResumeLimits,
  ToolCall,
  ToolOutput,
} from "../types.ts";

export interface GenerationContext extends GuidanceContext {
  continuer: Continuer;
  counters: ChatCounters;
  logger: Logger | undefined;
  externalLeaseMs: number;
  stopsRepetition: boolean;
}

type FinishEvent = Extract<ChatEvent, { type: "finish" }>;
type EngineText = Extract<GenerationEvent, { type: "text" }>;
type EngineHold = Extract<GenerationEvent, { type: "hold" }>;
type EngineFinish = Extract<GenerationEvent, { type: "finish" }>;

export class RunningChat implements ChatGeneration {
  readonly #request: ChatRequest;
  readonly #context: GenerationContext;
  readonly #run: EngineRun;
  readonly #looksForCalls: boolean;
  /** Only if the request asks for log-probabilities. */
  readonly #tokens: AnswerTokens | null;
  /** The round's results so far, by call id. They may come before the hold. */
  readonly #known = new Map<string, KnownOutput>();
  #guided: GuidedRounds | null = null;
  /** The prompt of the first round. */
  #prompt: Prompt | null = null;
  #marks: PromptMarks | null = null;
  #round: Round | null = null;
  #roundCount = 0;
  #reasoningTokens = 0;
  /** Of the round that begins next. */
  #limits: ResumeLimits = {};
  #callable: readonly string[] | undefined;
  #hold: ChatHold | null = null;
  #cancelled = false;
  readonly #warnings = new Set<string>();
  /** The last round that is remembered. */
  #heldTurn: HeldTurn | undefined;

  constructor(request: ChatRequest, context: GenerationContext) {
    this.#request = request;
    this.#context = context;
    this.#looksForCalls = request.toolMode !== "none" && request.tools.length > 0;
    this.#tokens =
      request.topLogprobs === undefined
        ? null
        : new AnswerTokens((token) => context.engine.tokenBytes(token));
    this.#run = new EngineRun(request, context, {
      looksForCalls: this.#looksForCalls,
      onRepetition: () => (this.#mayAnswerAnew ? "hold" : "cancel"),
    });
  }

  [Symbol.asyncIterator](): AsyncIterator<ChatEvent> {
    return this.#rounds();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#run.cancel();
    this.#hold?.answer("cancelled");
  }

  extend(output: ToolOutput, isWhole: boolean): void {
    this.#known.set(output.callId, { output, isWhole });
    this.#hold?.extend();
  }

  /** @throws FermataError not_held | invalid_value (a call has no output) | template_error */
  async resume(outputs: ToolOutput[], limits: ResumeLimits = {}): Promise<boolean> {
    const { maxTokens, say, ifCut } = limits;
    const hold = this.#openHold("resume");
    if (maxTokens !== undefined) this.#run.limitTokens(maxTokens);
    this.#limits = limits;
    const sayIfCut = ifCut?.say;
    return await hold.resume(outputs, { maxTokens: this.#run.remainingTokens, say, sayIfCut });
  }

  /** @throws FermataError not_held */
  release(): void {
    this.#openHold("release").answer("released");
  }

  #openHold(action: "resume" | "release"): ChatHold {
    if (this.#hold?.isOpen === true) return this.#hold;
    throw new FermataError("not_held", `There is no hold to ${action}.`);
  }

  async #prepare(): Promise<{ prompt: Prompt; grammar: Grammar | null }> {
    const { guided, prompt, marks } = await prepareAnswer(this.#request, this.#context, this.#run);
    this.#guided = guided;
    this.#marks = marks;
    return { prompt, grammar: await this.#nextGrammar(prompt.rendering) };
  }

  async *#rounds(): AsyncGenerator<ChatEvent, void, void> {
    const onAbort = (): void => this.cancel();
    this.#request.signal?.addEventListener("abort", onAbort, { once: true });
    if (this.#request.signal?.aborted) this.cancel();
    try {
      if (this.#cancelled) return yield cancelledEarly;
      const preparing = this.#prepare();
      this.#request.onPrepare?.(preparing);
      // Tokenizing and compiling may take long, and cannot be stopped.
      const prepared = await Promise.race([preparing, this.#run.cancelled]);
      if (prepared === null) return yield cancelledEarly;
      const { prompt, grammar } = prepared;
      this.#prompt = prompt;
      this.#run.start(prompt.tokens, grammar, this.#marks?.lengths, this.#marks?.shared);
      this.#beginRound(prompt.rendering, prompt.messages);
      for (;;) {
        const event = await this.#run.next();
        let finish: FinishEvent | null = null;
        if (event.type === "progress") yield event;
        else if (event.type === "text") yield* await this.#onText(event);
        else if (event.type === "hold" && this.#isMistaken(event))
          finish = await this.#continueText();
        else if (event.type === "hold" && event.reason === "requested" && this.#currentRound.inCall)
          this.#run.cancel();
        else if (event.type === "hold") {
          yield* await this.#endRound(event);
          finish = await this.#holdOrEnd(event);
          if (this.#hold !== null) {
            const calls = [...this.#currentRound.calls];
            yield { type: "hold", calls, usage: this.#run.usage, turn: this.#heldTurn };
            finish = await this.#afterHold(this.#hold, calls);
          }
        } else if (event.type === "finish") {
          yield* await this.#onFinish(event);
          return;
        }
        if (finish === null) continue;
        yield finish;
        return;
      }
    } finally {
      this.#request.signal?.removeEventListener("abort", onAbort);
      this.#hold?.answer("cancelled");
      await this.#run.close();
    }
  }

  #onText({ text, tokens, logprobs }: EngineText): Promise<OutputEvent[]> {
    const round = this.#currentRound;
    const wasReasoning = round.inReasoning;
    this.#tokens?.add(text, logprobs ?? []);
    const events = round.push(text);
    if (round.endsEarly) this.#run.endRound();
    if (wasReasoning || round.inReasoning) this.#reasoningTokens += tokens.length;
    return this.#checked(events);
  }

  /** A call that ends is validated before anyone sees it. */
  async #checked(events: OutputEvent[]): Promise<OutputEvent[]> {
    for (const event of events) {
      if (event.type !== "call-end") continue;
      const isGuided = this.#currentRound.isGuided(event.call);
      const fault = (await this.#guided?.checkCall(event.call, isGuided)) ?? null;
      if (fault === null) continue;
      event.call.problem = fault.problem;
      if (!fault.isCertain) event.call.mayFit = true;
      event.call.withoutNulls = fault.withoutNulls;
      const { id, name } = event.call;
      this.#request.logger?.warn({ call: id, tool: name }, "a call does not fit its tool's schema");
    }
    return this.#tokens?.attribute(events) ?? events;
  }

  /** The engine saw a call's end where the text has none: a tag in a string or in reasoning. */
  #isMistaken({ reason }: EngineHold): boolean {
    const { inCall, calls } = this.#currentRound;
    return reason === "text_after_call" && (inCall || calls.length === 0);
  }

  /** @returns null: the text goes on */
  async #continueText(): Promise<FinishEvent | null> {
    if (this.#run.remainingTokens === 0) return await this.#release("length");
    await this.#run.continueText();
    return null;
  }

  /** True: a text that repeats itself may get a last turn without tools, because it has results of tools. */
  get #mayAnswerAnew(): boolean {
    return this.#roundCount > 1 && this.#callable === undefined && !this.#currentRound.inCall;
  }

  /** A requested hold ends a text, or calls, that repeat. */
  async #endRound({ reason }: EngineHold): Promise<OutputEvent[]> {
    const isWhole = reason !== "requested" || this.#currentRound.endsEarly;
    const events = await this.#checked(this.#currentRound.finish(isWhole));
    if (isWhole) this.#logTurn("stop");
    else this.#request.logger?.warn({}, repeatedText.warning);
    return events;
  }

  /** @returns null: the round waits for a resume, and there is a hold */
  async #holdOrEnd({ reason, pendingToken }: EngineHold): Promise<FinishEvent | null> {
    const { calls } = this.#currentRound;
    const waits = calls.length > 0 || reason === "requested";
    const isHeld = waits && this.#request.toolMode !== "external";
    // No tool runs when there is no room left for an answer.
    if (isHeld && this.#run.remainingTokens === 0) return await this.#release("length");
    this.#remember(pendingToken);
    if (!isHeld) return await this.#release(calls.length === 0 ? "stop" : "tool_calls");
    const { counters, logger, continuer } = this.#context;
    this.#hold = new ChatHold({
      continuer,
      request: this.#continueRequest(pendingToken),
      calls,
      known: this.#known,
      onExtend: (options) => this.#run.extend(options),
      onNoPlace: () => (counters.unextendedHolds += 1),
      onError: (error) => logger?.warn({ error }, "results could not be prefilled early"),
    });
    if (this.#cancelled) this.#hold.answer("cancelled");
    else this.#hold.extend();
    return null;
  }

  /** @returns null: the generation continues, or a cancel will end it */
  async #afterHold(hold: ChatHold, calls: ToolCall[]): Promise<FinishEvent | null> {
    const answer = await hold.answered;
    this.#hold = null;
    if (answer === "released") return await this.#release("tool_calls", calls);
    if (answer === "full") return await this.#release("length");
    if (answer !== "cancelled") await this.#take(answer);
    return null;
  }

  async #onFinish({ reason, stopString, stopToken }: EngineFinish): Promise<ChatEvent[]> {
    const wasCut = reason === "cancelled" || reason === "length";
    const round = this.#currentRound;
    const { inCall } = round;
    const rest = await this.#checked(round.finish(!wasCut));
    if (round.endsEarly && reason !== "cancelled" && this.#request.toolMode === "external") {
      this.#logTurn("stop");
      return [...rest, await this.#finish("tool_calls")];
    }
    if (reason === "cancelled" && this.#run.isRepeating && !this.#cancelled) {
      this.#request.logger?.warn({}, repeatedText.warning);
      const notice: ChatEvent = { type: "content", text: `\n\n[${repeatedText.notice}]` };
      this.#warnings.add(repeatedText.notice);
      return [...rest, notice, await this.#finish(inCall ? "length" : "stop", [])];
    }
    if (reason !== "released") this.#logTurn(wasCut ? reason : "stop");
    if (reason === "end") this.#remember(true);
    else if (reason === "length" && round.isText) this.#remember(false);
    const brokeCall = reason === "stop_string" && inCall && !round.lastCallIsWhole;
    const ended = brokeCall ? "length" : "tool_calls";
    const finish = await this.#finish(wasCut ? reason : ended);
    if (reason !== "stop_string") return [...rest, finish];
    return [...rest, { ...finish, ...(stopToken === undefined ? { stopString } : { stopToken }) }];
  }

  #continueRequest(pendingToken: boolean): Omit<ContinueRequest, "outputs"> {
    const round = this.#currentRound;
    const { tokens, remainingTokens } = this.#run;
    return {
      scope: this.#request,
      turn: round.turn(pendingToken ? this.#context.prompts.endTokenOf(tokens) : ""),
      round,
      heldTokens: tokens.length - (pendingToken ? 1 : 0),
      maxTokens: remainingTokens,
    };
  }

  async #take({
    kind,
    tokens,
    keepPending,
    rendering,
    messages,
    truncatedCount,
  }: Continuation): Promise<void> {
    const { counters, logger } = this.#context;
    counters.truncatedResults += truncatedCount;
    const { ifCut = this.#limits } = this.#limits;
    this.#callable = (truncatedCount > 0 ? ifCut : this.#limits).callable;
    const grammar = await Promise.race([this.#nextGrammar(rendering), this.#run.cancelled]);
    // Its end comes as an event.
    if (this.#cancelled) return;
    const marks = Int32Array.from(marksBefore(tokens, this.#marks?.opening ?? new Int32Array(0)));
    if (kind === "resume") {
      counters.resumes += 1;
      this.#run.resume({ tokens, marks, keepPending, grammar });
    } else {
      if (!this.#currentRound.endsEarly) {
        counters.rerenders += 1;
        const details = { tokens: tokens.length, rerenders: counters.rerenders };
        logger?.warn(details, "the template rewrites history: re-rendered");
      }
      await this.#run.restart(tokens, grammar, marks);
    }
    this.#beginRound(rendering, messages);
  }

  async #nextGrammar(rendering: Rendering): Promise<Grammar | null> {
    const reasoning = this.#reasoningAfter(rendering);
    const start = reasoning === "off" ? "no" : reasoning;
    return (await this.#guided?.next(start, this.#callable)) ?? null;
  }

  /** For the next round. An answer that has begun has no more reasoning. */
  #reasoningAfter({ reasoning }: Rendering): ReasoningStart {
    return this.#begun === "" ? reasoning : "no";
  }

  /** The beginning of the next round that is already in the prompt. */
  get #begun(): string {
    return this.#roundCount === 0 ? (this.#request.prefill ?? "") : "";
  }

  #beginRound(rendering: Rendering, before: readonly RenderMessage[]): void {
    const { prompts } = this.#context;
    this.#known.clear();
    this.#round = new Round({
      rendering,
      before,
      format: this.#guided?.isMasked === true ? guidedFormat(prompts.format) : prompts.format,
      reasoning: this.#reasoningAfter(rendering),
      begun: this.#begun,
      stopsRepetition: this.#context.stopsRepetition && !mayRepeatCalls(this.#request),
      callIds: this.#roundCount === 0 ? (this.#request.written?.callIds ?? []) : [],
      ...(this.#guided?.calls ?? { offered: null }),
    });
    this.#roundCount += 1;
  }

  #remember(endsWithToken: boolean): void {
    if (this.#prompt === null) return;
    const { tokens } = this.#run;
    const ended = { round: this.#currentRound, tokens, endsWithToken };
    this.#heldTurn = rememberRound(this.#context.prompts, this.#request, this.#prompt, ended);
  }

  #logTurn(reason: "stop" | "length" | "cancelled"): void {
    if (this.#looksForCalls) this.#currentRound.logEnd(reason, this.#request.logger);
    if (this.#currentRound.endsEarly) this.#warnings.add(repeatedCall.notice);
  }

  async #release(reason: FinishReason, calls?: ToolCall[]): Promise<FinishEvent> {
    await this.#run.release();
    return await this.#finish(reason, calls);
  }

  /** `tool_calls` only if there are calls that the client must run; else `stop`. */
  async #finish(
    reason: FinishReason,
    calls = this.#request.toolMode === "external" ? [...this.#currentRound.calls] : [],
  ): Promise<FinishEvent> {
    const isStop = reason === "tool_calls" && calls.length === 0;
    const round = this.#currentRound;
    const isDocument = round.calls.length === 0 && (isStop || reason === "stop");
    const fault = isDocument ? await this.#guided?.checkDocument(round.content) : null;
    return {
      type: "finish",
      reason: isStop ? "stop" : reason,
      calls,
      usage: { ...this.#run.usage, reasoningTokens: this.#reasoningTokens },
      ...(fault ? { problem: fault.problem } : {}),
      ...(this.#warnings.size === 0 ? {} : { warnings: [...this.#warnings] }),
    };
  }

  get #currentRound(): Round {
    if (this.#round === null) throw new FermataError("internal_error", "No round has begun.");
    return this.#round;
  }
}
