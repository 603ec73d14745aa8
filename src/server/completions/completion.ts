/** The two wire formats of POST /v1/completions. */

import {
  choiceExtras,
  finishReason,
  promptExtras,
  type ResponseIdentity,
  stopReasonOf,
  usage,
  usageOfChoices,
  usageSoFar,
  wireFinishReason,
  type WireFinishReason,
  wireUsage,
} from "../answer/completion-parts.ts";
import { answer, choice, list, nullable, string, type ValueOf, whole } from "../body/shapes.ts";
import { addUsage } from "../../chat/answer/engine-run.ts";
import type { ChatUsage } from "../../chat/types.ts";
import type { ModelInfo } from "../../engine/types.ts";
import { noUsage } from "../../engine/generation.ts";
import type { FermataError } from "../../errors.ts";
import type { ChoiceEvent } from "../answer/choices.ts";
import type { Answer } from "../answer/collect-answer.ts";
import { jsonMessage, type SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { errorBody } from "../http/error-replies.ts";
import type { TimesWanted, UsageWanted } from "../body/generation.ts";
import { wirePromptLogprobs } from "../answer/logprobs.ts";
import type { TokenWishes } from "../body/token-wishes.ts";
import type { TextChoice } from "./text-choices.ts";
import {
  echoedLogprobs,
  joinedLogprobs,
  type TextLogprobs,
  textLogprobs,
  textLogprobsShape,
} from "./text-logprobs.ts";

const textChoice = answer(
  {
    index: whole,
    text: string,
    logprobs: nullable(textLogprobsShape),
    finish_reason: finishReason,
  },
  { ...choiceExtras, ...promptExtras },
);

export const textCompletion = {
  id: string,
  object: choice("text_completion"),
  created: whole,
  model: string,
  system_fingerprint: string,
  choices: list(textChoice),
  usage,
};

/** In a stream, the prompt's tokens come with the first chunk, others with the chunk before which they were generated. */
type WireChoice = Omit<ValueOf<typeof textChoice>, "finish_reason"> & {
  finish_reason: WireFinishReason | null;
};

export interface TextCompletionShape {
  /** Their prompts' texts stand before their own. */
  choices: readonly TextChoice[];
  /** Answers to each prompt; choices of one prompt are neighbours. */
  n: number;
  withLogprobs: boolean;
  usage: UsageWanted;
  tokens: TokenWishes;
  /** The prompts are told. */
  echoes: boolean;
  model: Pick<ModelInfo, "bosToken">;
  tokenBytes(token: number): Uint8Array;
  /** Which times a stream tells before its end. */
  times: TimesWanted;
}

export function wireTextCompletion(
  identity: ResponseIdentity,
  answers: readonly Answer[],
  shape: TextCompletionShape,
) {
  const choices = answers.map((one, index) => wireChoice(one, index, shape));
  const timings = shape.choices[0]?.times.timings;
  const usages = answers.map(({ finish }) => finish.usage);
  const counts = wireUsage(usageOfPrompts(usages, shape.n));
  return { ...head(identity), choices, usage: counts, timings };
}

function wireChoice(
  { content, logprobs, finish }: Answer,
  index: number,
  shape: TextCompletionShape,
): WireChoice {
  const { tokens, withLogprobs, tokenBytes } = shape;
  const { prompt, record } = shape.choices[index]!;
  const own = textLogprobs(logprobs, prompt.length, tokens.namesAsIds);
  const echoed = echoedOf(index, shape);
  return {
    index,
    text: prompt + content,
    logprobs: withLogprobs ? (echoed === null ? own : joinedLogprobs(echoed, own)) : null,
    finish_reason: wireFinishReason(finish.reason),
    ...stopReasonOf(finish),
    ...(tokens.ids
      ? { prompt_token_ids: [...record.prompt], token_ids: [...record.generated] }
      : {}),
    ...(tokens.promptLogprobs === undefined
      ? {}
      : { prompt_logprobs: wirePromptLogprobs(record.promptLogprobs, tokenBytes) }),
  };
}

/** Null: the prompt is not echoed, or no log-probabilities are asked for. */
function echoedOf(index: number, shape: TextCompletionShape): TextLogprobs | null {
  if (!shape.echoes || !shape.withLogprobs) return null;
  const { model, tokenBytes, tokens } = shape;
  const { namesAsIds } = tokens;
  const { record, prompt } = shape.choices[index]!;
  return echoedLogprobs(record, prompt, { model, tokenBytes, namesAsIds });
}

/** Chunks with text, one with each choice's finish reason, then the usage if asked for. */
export class TextCompletionStream implements AnswerStream<ChoiceEvent> {
  readonly #identity: ResponseIdentity;
  readonly #shape: TextCompletionShape;
  readonly #offsets = new Map<number, number>();
  readonly #usages: ChatUsage[] = [];
  /** Choices of which a chunk was told, and those whose text has begun. */
  readonly #told = new Set<number>();
  readonly #begun = new Set<number>();

  constructor(identity: ResponseIdentity, shape: TextCompletionShape) {
    this.#identity = identity;
    this.#shape = shape;
  }

  /** With log-probabilities, an echoed prompt waits for its own. */
  opening(): SseMessage[] {
    const { choices, withLogprobs } = this.#shape;
    if (withLogprobs) return [];
    return choices.flatMap(({ prompt }, index) => (prompt === "" ? [] : [this.#echo(index, null)]));
  }

  messages(told: ChoiceEvent): SseMessage[] {
    const { choice, event } = told;
    const isText = event.type === "content" || event.type === "finish";
    if (!isText || this.#begun.has(choice)) return this.#messages(told);
    this.#begun.add(choice);
    const echoed = echoedOf(choice, this.#shape);
    const first = echoed === null ? [] : [this.#echo(choice, echoed)];
    return [...first, ...this.#messages(told)];
  }

  #messages({ choice: index, event }: ChoiceEvent): SseMessage[] {
    const { times: wanted, usage, tokens } = this.#shape;
    const { prompt, times } = this.#shape.choices[index]!;
    const { timings } = times;
    if (event.type === "progress") {
      if (!wanted.progress) return [];
      const choice = { index, text: "", logprobs: null, finish_reason: null };
      return times.progress(event, wanted).map((told) => this.#chunk(choice, told));
    }
    if (event.type === "content") {
      const { text, logprobs = [] } = event;
      const offset = this.#offsets.get(index) ?? prompt.length;
      this.#offsets.set(index, offset + text.length);
      const told = this.#shape.withLogprobs
        ? textLogprobs(logprobs, offset, tokens.namesAsIds)
        : null;
      const choice = { index, text, logprobs: told, finish_reason: null };
      return [this.#chunk(choice, wanted.perToken ? { timings } : {})];
    }
    if (event.type !== "finish") return [];
    this.#usages[index] = event.usage;
    const finish_reason = wireFinishReason(event.reason);
    const choice = { index, text: "", logprobs: null, finish_reason, ...stopReasonOf(event) };
    return [this.#chunk(choice, wanted.perToken || !usage.atEnd ? { timings } : {})];
  }

  closing(): SseMessage[] {
    const done = { data: "[DONE]" };
    if (!this.#shape.usage.atEnd) return [done];
    const usage = wireUsage(usageOfPrompts(this.#usages, this.#shape.n));
    const timings = this.#shape.choices[0]?.times.timings;
    return [jsonMessage({ ...head(this.#identity), choices: [], usage, timings }), done];
  }

  failure(error: FermataError): SseMessage[] {
    return [jsonMessage(errorBody(error))];
  }

  #echo(index: number, logprobs: TextLogprobs | null): SseMessage {
    const { prompt: text } = this.#shape.choices[index]!;
    // The tokens behind it belong to the next chunk.
    return this.#chunk({ index, text, logprobs, finish_reason: null }, {}, false);
  }

  #chunk(choice: WireChoice, more: object = {}, takesTokens = true): SseMessage {
    const { usage, tokens } = this.#shape;
    const { record } = this.#shape.choices[choice.index]!;
    const isFirst = !this.#told.has(choice.index);
    this.#told.add(choice.index);
    const ids = tokens.ids && {
      ...(isFirst ? { prompt_token_ids: [...record.prompt] } : {}),
      token_ids: takesTokens ? record.take() : [],
    };
    const counts = usage.continuous ? usageSoFar(record) : null;
    return jsonMessage({
      ...head(this.#identity),
      choices: [{ ...choice, ...ids }],
      ...(usage.atEnd ? { usage: counts } : {}),
      ...more,
    });
  }
}

/** Of `n` choices a prompt, each prompt counted once. */
function usageOfPrompts(usages: readonly ChatUsage[], n: number): ChatUsage {
  let sum: ChatUsage = noUsage;
  for (let index = 0; index < usages.length; index += n) {
    const [first, ...others] = usages.slice(index, index + n);
    if (first === undefined) continue;
    sum = addUsage(sum, usageOfChoices([first, ...others]));
  }
  return sum;
}

function head(identity: ResponseIdentity): ResponseIdentity & { object: "text_completion" } {
  return { ...identity, object: "text_completion" };
}
