/** Engine events to the two wire formats of POST /completion. */

import type { GenerationEvent, Sampling, TokenLogprobs } from "../../engine/types.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import { jsonMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { errorBody } from "../http/error-replies.ts";
import { generationSettings } from "../answer/generation-settings.ts";
import type { TokenTimes } from "../answer/token-times.ts";
import type { TimesWanted } from "../body/generation.ts";
import { tokenText, wireLogprob } from "../answer/logprobs.ts";

type Progress = Extract<GenerationEvent, { type: "progress" }>;
type Finish = Extract<GenerationEvent, { type: "finish" }>;

export interface NativeShape {
  model: string;
  sampling: Sampling;
  stop: readonly string[];
  maxTokens: number | undefined;
  topLogprobs: number | undefined;
  /** Probabilities that the sampler drew by, in place of the model's logarithms. */
  postSampling: boolean;
  document: DocumentFormat | undefined;
  contextSize: number;
  returnTokens: boolean;
  stream: boolean;
  times: TimesWanted;
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
  readonly #promptTokens: number;
  readonly #shape: NativeShape;
  readonly #times: TokenTimes;
  #text = "";
  readonly #tokens: number[] = [];
  readonly #logprobs: TokenLogprobs[] = [];

  constructor(
    index: number,
    prompt: string,
    promptTokens: number,
    shape: NativeShape,
    times: TokenTimes,
  ) {
    this.#times = times;
    this.#index = index;
    this.#prompt = prompt;
    this.#promptTokens = promptTokens;
    this.#shape = shape;
  }

  /** Nothing is asked for but that the prompt is in the cache. */
  get onlyReads(): boolean {
    return this.#shape.maxTokens === 0;
  }

  /** The engine begins to read the prompt. */
  start(): void {
    this.#times.drew(0);
  }

  /** @returns what a stream tells of it */
  progress(event: Progress): object[] {
    this.#times.observe(event);
    const { stream, times: wanted } = this.#shape;
    if (!stream || !wanted.progress) return [];
    const piece = this.#piece("");
    return this.#times.progress(event, wanted).map((told) => ({ ...piece, ...told }));
  }

  /** @returns what a stream tells of it */
  add({ text, tokens, logprobs }: NativePiece): object {
    this.#text += text;
    this.#tokens.push(...tokens);
    this.#logprobs.push(...logprobs);
    if (tokens.length > 0) this.#times.drew(this.#tokens.length);
    this.#times.observe({ type: "content", text });
    return { ...this.#piece(text, tokens), ...this.#probabilities(logprobs) };
  }

  #piece(text: string, tokens: readonly number[] = []): object {
    return {
      index: this.#index,
      content: text,
      tokens,
      stop: false,
      id_slot: -1,
      tokens_predicted: this.#tokens.length,
      tokens_evaluated: this.#promptTokens,
      ...(this.#shape.times.perToken ? { timings: this.#times.timings } : {}),
    };
  }

  /** @param streamed the text has been told */
  end(finish: Finish, streamed: boolean): object {
    return this.#end(this.onlyReads ? withoutAnswer(finish) : finish, streamed);
  }

  #end(finish: Finish, streamed: boolean): object {
    const { model, sampling, stop, maxTokens, topLogprobs, document, contextSize } = this.#shape;
    const { usage, stopString } = finish;
    this.#times.end(usage);
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
        ...generationSettings(sampling, maxTokens),
        stop,
        n_ctx: contextSize,
        n_probs: topLogprobs ?? 0,
        post_sampling_probs: this.#shape.postSampling,
        grammar: document?.kind === "grammar" ? document.text : "",
        stream: streamed,
      },
      prompt: this.#prompt,
      has_new_line: this.#text.includes("\n"),
      truncated: false,
      stop_type: stopType(finish),
      stopping_word: stopString,
      // The last token was drawn and not computed.
      tokens_cached: usage.promptTokens + Math.max(usage.generatedTokens - 1, 0),
      timings: this.#times.timings,
      ...(streamed ? {} : this.#probabilities(this.#logprobs)),
    };
    const { responseFields } = this.#shape;
    return responseFields.length === 0 ? whole : pick(whole, responseFields);
  }

  #probabilities(logprobs: readonly TokenLogprobs[]): object {
    if (logprobs.length === 0) return {};
    const { postSampling, tokenBytes } = this.#shape;
    const wire = (id: number, logprob: number): object => {
      const bytes = tokenBytes(id);
      const value = postSampling ? { prob: Math.exp(logprob) } : { logprob: wireLogprob(logprob) };
      return { id, token: tokenText(bytes), bytes: [...bytes], ...value };
    };
    const others = postSampling ? "top_probs" : "top_logprobs";
    return {
      completion_probabilities: logprobs.map(({ token, logprob, top }) => ({
        ...wire(token, logprob),
        [others]: top.map(([id, other]) => wire(id, other)),
      })),
    };
  }
}

function withoutAnswer(finish: Finish): Finish {
  return { ...finish, reason: "length", usage: { ...finish.usage, generatedTokens: 0 } };
}

export interface NativeEvent {
  data: object;
}

/** No `[DONE]`: the last event says that it is the last. */
export const nativeCompletionStream: AnswerStream<NativeEvent> = {
  messages: ({ data }) => [jsonMessage(data)],
  failure: (error) => [jsonMessage(errorBody(error))],
};

function stopType({ reason }: Finish): "eos" | "word" | "limit" | "none" {
  if (reason === "end") return "eos";
  if (reason === "stop_string") return "word";
  return reason === "length" ? "limit" : "none";
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
