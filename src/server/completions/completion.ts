/** The two wire formats of POST /v1/completions. */

import {
  type ResponseIdentity,
  usageOfChoices,
  wireFinishReason,
  type WireFinishReason,
  wireUsage,
  type WireUsage,
} from "../answer/completion-parts.ts";
import type { ChatUsage, ContentToken } from "../../chat/types.ts";
import { noUsage } from "../../engine/generation.ts";
import type { FermataError } from "../../errors.ts";
import type { ChoiceEvent } from "../answer/choices.ts";
import type { Answer } from "../answer/collect-answer.ts";
import type { SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { errorBody } from "../http/error-replies.ts";
import type { PromptProgress, Timings, TokenTimes } from "../answer/token-times.ts";
import type { TimesWanted } from "../body/generation.ts";
import { tokenText, wireLogprob } from "../answer/logprobs.ts";

interface TextLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  /** Where each token begins in the choice's text, in UTF-16 units. */
  text_offset: number[];
}

interface TextChoice {
  index: number;
  text: string;
  logprobs: TextLogprobs | null;
  finish_reason: WireFinishReason | null;
}

interface TextCompletion extends ResponseIdentity {
  object: "text_completion";
  choices: TextChoice[];
  usage?: WireUsage | null;
  /** llama-server's, as in a chat completion. */
  timings?: Timings | undefined;
  prompt_progress?: PromptProgress;
}

export interface TextCompletionShape {
  /** Before each choice's text: the prompts if they are to be echoed, else empty texts. */
  prefixes: readonly string[];
  /** Answers to each prompt; choices of one prompt are neighbours. */
  n: number;
  withLogprobs: boolean;
  includeUsage: boolean;
  /** Which times a stream tells before its end, and those of the choices. */
  timesWanted: TimesWanted;
  times: readonly TokenTimes[];
}

export function textCompletion(
  identity: ResponseIdentity,
  answers: readonly Answer[],
  shape: TextCompletionShape,
): TextCompletion {
  const choices = answers.map(({ content, logprobs, finish }, index) => ({
    index,
    text: (shape.prefixes[index] ?? "") + content,
    logprobs: shape.withLogprobs ? textLogprobs(logprobs, 0) : null,
    finish_reason: wireFinishReason(finish.reason),
  }));
  const usages = answers.map(({ finish }) => finish.usage);
  const usage = wireUsage(usageOfPrompts(usages, shape.n));
  return { ...head(identity), choices, usage, timings: shape.times[0]?.timings };
}

/** Chunks with text, one with each choice's finish reason, then the usage if asked for. */
export class TextCompletionStream implements AnswerStream<ChoiceEvent> {
  readonly #identity: ResponseIdentity;
  readonly #shape: TextCompletionShape;
  readonly #offsets = new Map<number, number>();
  readonly #usages: ChatUsage[] = [];

  constructor(identity: ResponseIdentity, shape: TextCompletionShape) {
    this.#identity = identity;
    this.#shape = shape;
  }

  opening(): SseMessage[] {
    return this.#shape.prefixes.flatMap((text, index) =>
      text === "" ? [] : [this.#chunk({ index, text, logprobs: null, finish_reason: null })],
    );
  }

  messages({ choice: index, event }: ChoiceEvent): SseMessage[] {
    const { times, timesWanted: wanted, includeUsage } = this.#shape;
    const timings = times[index]?.timings;
    if (event.type === "progress") {
      if (!wanted.progress) return [];
      const choice = { index, text: "", logprobs: null, finish_reason: null };
      const progress = times[index]?.progress(event, wanted) ?? [];
      return progress.map((told) => this.#chunk(choice, told));
    }
    if (event.type === "content") {
      const { text, logprobs = [] } = event;
      const offset = this.#offsets.get(index) ?? 0;
      this.#offsets.set(index, offset + text.length);
      const told = this.#shape.withLogprobs ? textLogprobs(logprobs, offset) : null;
      const choice = { index, text, logprobs: told, finish_reason: null };
      return [this.#chunk(choice, wanted.perToken ? { timings } : {})];
    }
    if (event.type !== "finish") return [];
    this.#usages[index] = event.usage;
    const finish_reason = wireFinishReason(event.reason);
    const choice = { index, text: "", logprobs: null, finish_reason };
    return [this.#chunk(choice, wanted.perToken || !includeUsage ? { timings } : {})];
  }

  closing(): SseMessage[] {
    const done = { data: "[DONE]" };
    if (!this.#shape.includeUsage) return [done];
    const usage = wireUsage(usageOfPrompts(this.#usages, this.#shape.n));
    const { timings } = this.#shape.times[0] ?? {};
    return [message({ ...head(this.#identity), choices: [], usage, timings }), done];
  }

  failure(error: FermataError): SseMessage[] {
    return [message(errorBody(error))];
  }

  #chunk(choice: TextChoice, more: object = {}): SseMessage {
    const usage = this.#shape.includeUsage ? { usage: null } : {};
    return message({ ...head(this.#identity), choices: [choice], ...usage, ...more });
  }
}

/** Of `n` choices a prompt, each prompt counted once. */
function usageOfPrompts(usages: readonly ChatUsage[], n: number): ChatUsage {
  const sum: ChatUsage = { ...noUsage };
  for (let index = 0; index < usages.length; index += n) {
    const [first, ...others] = usages.slice(index, index + n);
    if (first === undefined) continue;
    const prompt = usageOfChoices([first, ...others]);
    sum.promptTokens += prompt.promptTokens;
    sum.cachedTokens += prompt.cachedTokens;
    sum.generatedTokens += prompt.generatedTokens;
  }
  return sum;
}

function textLogprobs(tokens: readonly ContentToken[], start: number): TextLogprobs {
  const logprobs: TextLogprobs = {
    tokens: [],
    token_logprobs: [],
    top_logprobs: [],
    text_offset: [],
  };
  let offset = start;
  for (const { bytes, logprob, top } of tokens) {
    const text = tokenText(bytes);
    logprobs.tokens.push(text);
    logprobs.token_logprobs.push(wireLogprob(logprob));
    logprobs.top_logprobs.push(
      Object.fromEntries(top.map((other) => [tokenText(other.bytes), wireLogprob(other.logprob)])),
    );
    logprobs.text_offset.push(offset);
    offset += text.length;
  }
  return logprobs;
}

function head(identity: ResponseIdentity): ResponseIdentity & { object: "text_completion" } {
  return { ...identity, object: "text_completion" };
}

function message(value: object): SseMessage {
  return { data: JSON.stringify(value) };
}
