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
import type { TokenTimes } from "../answer/token-times.ts";
import type { TimesWanted, UsageWanted } from "../body/generation.ts";
import { wirePromptLogprobs } from "../answer/logprobs.ts";
import type { TokenRecord } from "../answer/token-record.ts";
import type { TokenWishes } from "../body/token-wishes.ts";
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
type TextChoice = Omit<ValueOf<typeof textChoice>, "finish_reason"> & {
  finish_reason: WireFinishReason | null;
};

export interface TextCompletionShape {
  /** Before each choice's text: the prompts if they are to be echoed, else empty texts. */
  prefixes: readonly string[];
  /** Answers to each prompt; choices of one prompt are neighbours. */
  n: number;
  withLogprobs: boolean;
  usage: UsageWanted;
  tokens: TokenWishes;
  /** The texts begin with the prompts. */
  echoes: boolean;
  /** Of the choices. */
  records: readonly TokenRecord[];
  model: Pick<ModelInfo, "bosToken">;
  tokenBytes(token: number): Uint8Array;
  /** Which times a stream tells before its end, and those of the choices. */
  timesWanted: TimesWanted;
  times: readonly TokenTimes[];
}

export function wireTextCompletion(
  identity: ResponseIdentity,
  answers: readonly Answer[],
  shape: TextCompletionShape,
) {
  const choices = answers.map((one, index) => wireChoice(one, index, shape));
  const usages = answers.map(({ finish }) => finish.usage);
  const counts = wireUsage(usageOfPrompts(usages, shape.n));
  return { ...head(identity), choices, usage: counts, timings: shape.times[0]?.timings };
}

function wireChoice(
  { content, logprobs, finish }: Answer,
  index: number,
  shape: TextCompletionShape,
): TextChoice {
  const { tokens, records, withLogprobs, tokenBytes } = shape;
  const prefix = shape.prefixes[index] ?? "";
  const record = records[index];
  const own = textLogprobs(logprobs, prefix.length, tokens.namesAsIds);
  const echoed = echoedOf(index, shape);
  return {
    index,
    text: prefix + content,
    logprobs: withLogprobs ? (echoed === null ? own : joinedLogprobs(echoed, own)) : null,
    finish_reason: wireFinishReason(finish.reason),
    ...stopReasonOf(finish),
    ...(tokens.ids
      ? { prompt_token_ids: [...(record?.prompt ?? [])], token_ids: [...(record?.generated ?? [])] }
      : {}),
    ...(tokens.promptLogprobs === undefined
      ? {}
      : { prompt_logprobs: wirePromptLogprobs(record?.promptLogprobs ?? [], tokenBytes) }),
  };
}

/** Null: the prompt is not echoed, or no log-probabilities are asked for. */
function echoedOf(index: number, shape: TextCompletionShape): TextLogprobs | null {
  const record = shape.records[index];
  if (!shape.echoes || !shape.withLogprobs || record === undefined) return null;
  const { model, tokenBytes, tokens } = shape;
  const { namesAsIds } = tokens;
  return echoedLogprobs(record, shape.prefixes[index] ?? "", { model, tokenBytes, namesAsIds });
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
    const { echoes, prefixes, withLogprobs } = this.#shape;
    if (!echoes || withLogprobs) return [];
    return prefixes.flatMap((text, index) => (text === "" ? [] : [this.#echo(index, null)]));
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
    const { times, timesWanted: wanted, usage, tokens } = this.#shape;
    const timings = times[index]?.timings;
    if (event.type === "progress") {
      if (!wanted.progress) return [];
      const choice = { index, text: "", logprobs: null, finish_reason: null };
      const progress = times[index]?.progress(event, wanted) ?? [];
      return progress.map((told) => this.#chunk(choice, told));
    }
    if (event.type === "content") {
      const { text, logprobs = [] } = event;
      const offset = this.#offsets.get(index) ?? this.#shape.prefixes[index]?.length ?? 0;
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
    const { timings } = this.#shape.times[0] ?? {};
    return [jsonMessage({ ...head(this.#identity), choices: [], usage, timings }), done];
  }

  failure(error: FermataError): SseMessage[] {
    return [jsonMessage(errorBody(error))];
  }

  #echo(index: number, logprobs: TextLogprobs | null): SseMessage {
    const text = this.#shape.prefixes[index] ?? "";
    // The tokens behind it belong to the next chunk.
    return this.#chunk({ index, text, logprobs, finish_reason: null }, {}, false);
  }

  #chunk(choice: TextChoice, more: object = {}, takesTokens = true): SseMessage {
    const { usage, tokens, records } = this.#shape;
    const record = records[choice.index];
    const isFirst = !this.#told.has(choice.index);
    this.#told.add(choice.index);
    const ids = tokens.ids && {
      ...(isFirst ? { prompt_token_ids: [...(record?.prompt ?? [])] } : {}),
      token_ids: takesTokens ? (record?.take() ?? []) : [],
    };
    const counts = usage.continuous && record !== undefined ? usageSoFar(record) : null;
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
