/** Engine events to the two wire formats of POST /completion. */

import type { GenerationEvent, Sampling, TokenLogprobs } from "../../engine/types.ts";
import type { FermataError } from "../../errors.ts";
import type { SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { errorBody } from "../http/error-body.ts";
import { tokenText, wireLogprob } from "../answer/logprobs.ts";

type Finish = Extract<GenerationEvent, { type: "finish" }>;

export interface NativeShape {
  model: string;
  sampling: Sampling;
  stop: readonly string[];
  maxTokens: number | undefined;
  contextSize: number;
  returnTokens: boolean;
  responseFields: readonly string[];
  tokenBytes(token: number): Uint8Array;
}

export interface NativePiece {
  text: string;
  tokens: readonly number[];
  logprobs: readonly TokenLogprobs[];
}

/** What one prompt led to, while it goes on. */
export class NativeAnswer {
  readonly #index: number;
  readonly #prompt: string;
  readonly #shape: NativeShape;
  readonly #startedAt = performance.now();
  #firstAt: number | null = null;
  #text = "";
  readonly #tokens: number[] = [];
  readonly #logprobs: TokenLogprobs[] = [];

  constructor(index: number, prompt: string, shape: NativeShape) {
    this.#index = index;
    this.#prompt = prompt;
    this.#shape = shape;
  }

  /** @returns what a stream tells of it */
  add({ text, tokens, logprobs }: NativePiece): object {
    this.#firstAt ??= performance.now();
    this.#text += text;
    this.#tokens.push(...tokens);
    this.#logprobs.push(...logprobs);
    return {
      index: this.#index,
      content: text,
      tokens,
      stop: false,
      id_slot: -1,
      tokens_predicted: this.#tokens.length,
      ...this.#probabilities(logprobs),
    };
  }

  /** @param streamed the text has been told */
  end(finish: Finish, streamed: boolean): object {
    const { model, sampling, stop, maxTokens, contextSize } = this.#shape;
    const { usage, stopString } = finish;
    const whole = {
      index: this.#index,
      content: streamed ? "" : this.#text,
      tokens: this.#shape.returnTokens && !streamed ? this.#tokens : [],
      id_slot: -1,
      stop: true,
      model,
      tokens_predicted: usage.generatedTokens,
      tokens_evaluated: usage.promptTokens,
      generation_settings: {
        ...generationSettings(sampling),
        stop,
        n_ctx: contextSize,
        n_predict: maxTokens ?? -1,
        max_tokens: maxTokens ?? -1,
        stream: streamed,
      },
      prompt: this.#prompt,
      has_new_line: this.#text.includes("\n"),
      truncated: false,
      stop_type: stopType(finish),
      stopping_word: stopString,
      tokens_cached: usage.promptTokens + usage.generatedTokens,
      timings: this.#timings(usage),
      ...(streamed ? {} : this.#probabilities(this.#logprobs)),
    };
    const { responseFields } = this.#shape;
    return responseFields.length === 0 ? whole : pick(whole, responseFields);
  }

  #probabilities(logprobs: readonly TokenLogprobs[]): object {
    if (logprobs.length === 0) return {};
    const wire = (id: number, logprob: number): object => {
      const bytes = this.#shape.tokenBytes(id);
      return { id, token: tokenText(bytes), bytes: [...bytes], logprob: wireLogprob(logprob) };
    };
    return {
      completion_probabilities: logprobs.map(({ token, logprob, top }) => ({
        ...wire(token, logprob),
        top_logprobs: top.map(([id, other]) => wire(id, other)),
      })),
    };
  }

  #timings({ promptTokens, cachedTokens, generatedTokens }: Finish["usage"]): object {
    const end = performance.now();
    const firstAt = this.#firstAt ?? end;
    const prompt = promptTokens - cachedTokens;
    return {
      cache_n: cachedTokens,
      ...paceOf("prompt", prompt, firstAt - this.#startedAt),
      ...paceOf("predicted", generatedTokens, end - firstAt),
    };
  }
}

export interface NativeEvent {
  data: object;
}

/** No `[DONE]`: the last event says that it is the last. */
export class NativeCompletionStream implements AnswerStream<NativeEvent> {
  opening(): SseMessage[] {
    return [];
  }

  messages({ data }: NativeEvent): SseMessage[] {
    return [{ data: JSON.stringify(data) }];
  }

  closing(): SseMessage[] {
    return [];
  }

  failure(error: FermataError): SseMessage[] {
    return [{ data: JSON.stringify(errorBody(error)) }];
  }
}

function paceOf(name: string, count: number, milliseconds: number): object {
  return {
    [`${name}_n`]: count,
    [`${name}_ms`]: milliseconds,
    [`${name}_per_token_ms`]: count === 0 ? 0 : milliseconds / count,
    [`${name}_per_second`]: milliseconds === 0 ? 0 : (count * 1000) / milliseconds,
  };
}

function stopType({ reason }: Finish): "eos" | "word" | "limit" | "none" {
  if (reason === "end") return "eos";
  if (reason === "stop_string") return "word";
  return reason === "length" ? "limit" : "none";
}

/** Under llama-server's names. */
function generationSettings(sampling: Sampling): object {
  return {
    seed: sampling.seed,
    temperature: sampling.temperature,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    typical_p: sampling.typicalP,
    top_n_sigma: sampling.topNSigma ?? -1,
    xtc_probability: sampling.xtcProbability ?? 0,
    xtc_threshold: sampling.xtcThreshold ?? 0.1,
    dynatemp_range: sampling.dynatempRange ?? 0,
    dynatemp_exponent: sampling.dynatempExponent ?? 1,
    repeat_last_n: sampling.penaltyLastN,
    repeat_penalty: sampling.repeatPenalty,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    dry_multiplier: sampling.dry?.multiplier ?? 0,
    mirostat: sampling.mirostat ?? 0,
    ignore_eos: sampling.ignoresEnd ?? false,
    logit_bias: sampling.logitBias.map(([token, bias]) => ({ token, bias })),
  };
}

/** What there is of them; of `a/b`, `b` in `a`. */
function pick(whole: object, fields: readonly string[]): object {
  const entries = fields.flatMap((field) => {
    let value: unknown = whole;
    for (const name of field.split("/"))
      value =
        value instanceof Object && Object.hasOwn(value, name)
          ? Reflect.get(value, name)
          : undefined;
    return value === undefined ? [] : [[field, value] as const];
  });
  return Object.fromEntries(entries);
}
