/** The engine's generations behind one answer, one after the other, and their counts together; before them, what may refuse the answer. */

import type {
  EngineUsage,
  ExtendOptions,
  GenerateRequest,
  Generation,
  GenerationEvent,
  Grammar,
  PauseTriggers,
  ResumeOptions,
} from "../../engine/types.ts";
import { withTextBias } from "../../engine/engine.ts";
import { FermataError } from "../../errors.ts";
import type { ChatCounters, ChatEngine, ChatEvent, ChatRequest, ChatUsage } from "../types.ts";
import { noUsage } from "../../engine/generation.ts";
import type { PromptMarks } from "../prompt/marks.ts";
import type { Prompt, PromptBuilder } from "../prompt/prompt.ts";
import { type GuidanceContext, GuidedRounds, isScripted } from "./guided-rounds.ts";
import { RepetitionDetector } from "./repetition.ts";
import { recallRound } from "./turn-memory.ts";

type RunRequest = Omit<GenerateRequest, "prompt">;

interface RunContext {
  engine: ChatEngine;
  prompts: Pick<PromptBuilder, "spelledTokens" | "pauseTriggers">;
  externalLeaseMs: number;
  stopsRepetition: boolean;
}

interface RunOptions {
  looksForCalls: boolean;
  /** What becomes of a text that repeats itself, where it may not. */
  onRepetition(): "hold" | "cancel";
}

export class EngineRun {
  readonly #engine: ChatEngine;
  #request: RunRequest;
  readonly #usage = new UsageSum();
  #generation: Generation | null = null;
  #events: AsyncIterator<GenerationEvent> | null = null;
  #maxTokens: number | undefined;
  #cancelled = false;
  #cancel: (nothing: null) => void = () => {};
  /** Resolves at `cancel`. */
  readonly cancelled = new Promise<null>((resolve) => (this.#cancel = resolve));
  #drawn = 0;
  readonly #onTokens: NonNullable<ChatRequest["onTokens"]>;
  /** What an earlier process wrote, as far as the engine has not told it again. */
  #begun: Int32Array;
  readonly #onRepetition: (() => "hold" | "cancel") | null;
  /** Of the round, since its first token. */
  #repetition: RepetitionDetector | null = null;
  #isRepeating = false;
  /** The round is over, whatever the engine has written since. */
  #isPastRound = false;

  constructor(request: ChatRequest, context: RunContext, options: RunOptions) {
    this.#begun = Int32Array.from(request.written?.tokens ?? []);
    this.#onTokens = request.onTokens ?? (() => {});
    this.#onRepetition =
      context.stopsRepetition && !mayRepeatText(request) ? options.onRepetition : null;
    this.#engine = context.engine;
    this.#request = runRequest(request, context, options);
    this.#maxTokens = request.maxTokens;
  }

  get tokens(): readonly number[] {
    return this.#generation?.tokens ?? [];
  }

  /** It was held or cancelled since it wrote the same over and over. */
  get isRepeating(): boolean {
    return this.#isRepeating;
  }

  /** As far as the last hold or finish told. */
  get usage(): EngineUsage {
    return this.#usage.total;
  }

  /** Of `maxTokens`, which covers all rounds. */
  get remainingTokens(): number | undefined {
    return this.#maxTokens === undefined
      ? undefined
      : Math.max(0, this.#maxTokens - this.usage.generatedTokens);
  }

  /** From here on at most `count`; a limit is never raised. */
  limitTokens(count: number): void {
    const limit = this.usage.generatedTokens + count;
    this.#maxTokens = Math.min(this.#maxTokens ?? limit, limit);
  }

  /** Before the first start. */
  async prepare(): Promise<void> {
    const sampling = await withTextBias(this.#request.sampling, this.#engine);
    this.#request = { ...this.#request, sampling };
  }

  /** @param marks, @param shared see `SequenceRequest` */
  start(prompt: Int32Array, grammar: Grammar | null, marks?: Int32Array, shared?: number): void {
    this.#onTokens(this.#drawn);
    this.#generation = this.#engine.generate({
      ...this.#request,
      ...(grammar === null ? {} : guidedBy(grammar, this.#request.pause)),
      prompt,
      begun: this.#begun.length === 0 ? undefined : this.#begun,
      marks,
      shared,
      maxTokens: this.remainingTokens,
    });
    this.#events = this.#generation[Symbol.asyncIterator]();
    this.#isPastRound = false;
    if (this.#cancelled) this.#generation.cancel();
  }

  /** @throws what ends the generation */
  async next(): Promise<GenerationEvent> {
    let event = await this.#read();
    while (this.#isPastRound && event.type === "text") event = await this.#read();
    return event;
  }

  async #read(): Promise<GenerationEvent> {
    const result = await this.#events?.next().catch((error: unknown) => {
      throw this.#begun.length > 0 && isOfGrammar(error) ? lost(error) : error;
    });
    if (result === undefined || result.done) {
      throw new FermataError("internal_error", "The generation ended without a finish event.");
    }
    const event = result.value;
    if (event.type === "text") this.#count(event.tokens);
    if (event.type === "hold" || event.type === "finish") this.#usage.update(event.usage);
    if (event.type === "finish" && naturalEnds.has(event.reason)) this.#checkBegun();
    return event;
  }

  #count(tokens: Int32Array): void {
    const again = this.#begun.length === 0 ? 0 : this.#takeBegun(tokens);
    this.#drawn += tokens.length;
    if (tokens.length > 0)
      this.#onTokens(this.#drawn, again === 0 ? tokens : tokens.subarray(again));
    this.#watch(tokens);
  }

  /** @returns how many of the tokens an earlier process wrote */
  #takeBegun(tokens: Int32Array): number {
    const count = Math.min(tokens.length, this.#begun.length);
    if (tokens.subarray(0, count).some((token, index) => token !== this.#begun[index]))
      throw lost();
    this.#begun = this.#begun.subarray(count);
    return count;
  }

  /** The round is over: all that was written belongs to it, or came behind its end. */
  #checkBegun(): void {
    if (this.#begun.length > 0 && !this.#isPastRound) throw lost();
  }

  #watch(tokens: Int32Array): void {
    if (this.#onRepetition === null || this.#isRepeating || this.#isPastRound) return;
    const detector = (this.#repetition ??= new RepetitionDetector());
    this.#isRepeating = tokens.some((token) => detector.add(token));
    if (!this.#isRepeating) return;
    if (this.#onRepetition() === "hold") this.#generation?.pause();
    else this.#generation?.cancel();
  }

  /** The round ends with the text so far. What the engine writes until it holds or finishes is not told. */
  endRound(): void {
    this.#isPastRound = true;
    this.#generation?.pause();
  }

  /** Of a held generation; see `Generation.extend`. */
  extend(options: ExtendOptions): void {
    this.#generation?.extend(options);
  }

  resume(options: Omit<ResumeOptions, "maxTokens">): void {
    this.#checkBegun();
    this.#forgetRepetition();
    this.#onTokens(this.#drawn);
    this.#generation?.resume({ ...options, maxTokens: this.remainingTokens });
  }

  /** Ends a held generation. */
  async release(): Promise<void> {
    this.#generation?.release();
    let event = await this.next();
    while (event.type !== "finish") event = await this.next();
  }

  #forgetRepetition(): void {
    this.#repetition = null;
    this.#isRepeating = false;
  }

  /** Gives up a held generation for a new one. */
  async restart(prompt: Int32Array, grammar: Grammar | null, marks?: Int32Array): Promise<void> {
    this.#checkBegun();
    await this.release();
    this.#begun = new Int32Array(0);
    this.#forgetRepetition();
    this.#usage.next(false);
    this.start(prompt, grammar, marks);
  }

  /**
   * Gives up a held generation for a new one with the same tokens, which watches for calls afresh. Not
   * for a round with a grammar, which would begin afresh too.
   */
  async continueText(): Promise<void> {
    const tokens = Int32Array.from(this.tokens);
    await this.release();
    this.#usage.next(true);
    this.start(tokens, null);
  }

  cancel(): void {
    this.#cancelled = true;
    this.#cancel(null);
    this.#generation?.cancel();
  }

  /** @throws FermataError cancelled */
  throwIfCancelled(): void {
    if (this.#cancelled) throw new FermataError("cancelled", "The answer was cancelled.");
  }

  async close(): Promise<void> {
    this.#generation?.cancel();
    await this.#events?.return?.();
  }
}

function runRequest(
  request: ChatRequest,
  { prompts, externalLeaseMs }: RunContext,
  { looksForCalls }: RunOptions,
): RunRequest {
  const { sampling, toolMode, guidance } = request;
  return {
    sampling: request.heldTurn === undefined ? sampling : { ...sampling, goesOn: true },
    stop: request.stop,
    maxTokens: request.maxTokens,
    topLogprobs: request.topLogprobs,
    promptLogprobs: request.promptLogprobs,
    onPromptLogprobs: request.onPromptLogprobs,
    signal: request.signal,
    owner: request.owner,
    client: request.client,
    cacheSalt: request.cacheSalt,
    watch: request.watch,
    spelledTokens: prompts.spelledTokens,
    closeAtLimit: guidance?.closeAtLimit,
    pause: looksForCalls ? prompts.pauseTriggers : undefined,
    leaseMs: toolMode === "external" ? externalLeaseMs : undefined,
  };
}

/** A script and an answer without end may repeat themselves. */
export function mayRepeatCalls({ sampling }: ChatRequest): boolean {
  return sampling.ignoresEnd === true || isScripted(sampling);
}

/** A document may, too. */
function mayRepeatText(request: ChatRequest): boolean {
  return request.guidance?.document !== undefined || mayRepeatCalls(request);
}

/** The end of an answer that was cancelled before its first start. */
export const cancelledEarly = {
  type: "finish",
  reason: "cancelled",
  calls: [],
  usage: noUsage,
} satisfies ChatEvent;

const naturalEnds: ReadonlySet<string> = new Set(["end", "stop_string", "length"]);

/** The model, its template or its tools are no longer those that wrote it. */
function lost(cause?: unknown): FermataError {
  const message =
    "What was written before the restart does not fit the model or its tools any more. Ask again.";
  return new FermataError("engine_crashed", message, { cause });
}

/** A token stands where the grammar of the round allows none such. */
function isOfGrammar(error: unknown): boolean {
  return error instanceof FermataError && error.code === "grammar_failed";
}

/** With a grammar nothing but another call can follow a call. */
function guidedBy(
  grammar: Grammar,
  pause: PauseTriggers | undefined,
): Pick<GenerateRequest, "grammar" | "pause"> {
  return pause === undefined
    ? { grammar }
    : { grammar, pause: { ...pause, holdAtTextAfterCall: false } };
}

export function addUsage(one: ChatUsage, other: ChatUsage): ChatUsage {
  const reasoningTokens = (one.reasoningTokens ?? 0) + (other.reasoningTokens ?? 0);
  return {
    promptTokens: one.promptTokens + other.promptTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    resumedTokens: one.resumedTokens + other.resumedTokens,
    prefilledTokens: one.prefilledTokens + other.prefilledTokens,
    recomputedTokens: one.recomputedTokens + other.recomputedTokens,
    generatedTokens: one.generatedTokens + other.generatedTokens,
    ...(reasoningTokens === 0 ? {} : { reasoningTokens }),
  };
}

class UsageSum {
  #ended = noUsage;
  #current = noUsage;
  #hidesPrompt = false;

  get total(): EngineUsage {
    const current = this.#hidesPrompt
      ? { ...this.#current, promptTokens: 0, cachedTokens: 0 }
      : this.#current;
    return addUsage(this.#ended, current);
  }

  /** `usage` of the running generation, over its whole life. */
  update(usage: EngineUsage): void {
    this.#current = usage;
  }

  /** @param hidesPrompt the next generation's prompt is this one's text, which has been counted */
  next(hidesPrompt: boolean): void {
    this.#ended = this.total;
    this.#current = noUsage;
    this.#hidesPrompt = hidesPrompt;
  }
}

interface Prepared {
  guided: GuidedRounds;
  prompt: Prompt;
  marks: PromptMarks | null;
}

/** Does what may refuse the request. @throws FermataError of status 400; cancelled: after the step that was under way */
export async function prepareAnswer(
  request: ChatRequest,
  context: GuidanceContext & { counters: ChatCounters },
  run: EngineRun,
): Promise<Prepared> {
  const { prompts, counters } = context;
  if (request.heldTurn) recallRound(prompts, request, request.heldTurn);
  const guided = await GuidedRounds.create(request, context);
  run.throwIfCancelled();
  const prompt = await prompts.build(request);
  run.throwIfCancelled();
  request.onPrompt?.(prompt.tokens);
  if (prompt.spliced) counters.splices += 1;
  const marks = await prompts.marksOf(prompt, request);
  await run.prepare();
  run.throwIfCancelled();
  return { guided, prompt, marks };
}
