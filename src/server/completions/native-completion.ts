/** The two wire formats of POST /completion. */

import type { ContentToken, TokenProbability } from "../../chat/types.ts";
import type { FermataError } from "../../errors.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import { ownEntry } from "../../json.ts";
import type { ChoiceEvent } from "../answer/choices.ts";
import type { Answer } from "../answer/collect-answer.ts";
import { jsonMessage, type SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { errorBody } from "../http/error-replies.ts";
import { generationSettings } from "../answer/generation-settings.ts";
import type { TimesWanted } from "../body/generation.ts";
import { tokenText, wireLogprob } from "../answer/logprobs.ts";
import type { TextChoice } from "./text-choices.ts";

export interface NativeShape {
  model: string;
  choices: readonly TextChoice[];
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
}

type Finish = Answer["finish"];

export function wireNativeCompletion(answer: Answer, index: number, shape: NativeShape): object {
  const { record } = shape.choices[index]!;
  const tokens = shape.returnTokens ? record.generated : [];
  const hasNewLine = answer.content.includes("\n");
  return wireEnd({ ...answer, tokens, hasNewLine }, index, shape);
}

/** No `[DONE]`: the last event says that it is the last. */
export class NativeCompletionStream implements AnswerStream<ChoiceEvent> {
  readonly #shape: NativeShape;
  /** Choices whose text has a line break. */
  readonly #broken = new Set<number>();

  constructor(shape: NativeShape) {
    this.#shape = shape;
  }

  messages(told: ChoiceEvent): SseMessage[] {
    return this.#wire(told).map((data) => jsonMessage(data));
  }

  failure(error: FermataError): SseMessage[] {
    return [jsonMessage(errorBody(error))];
  }

  #wire({ choice: index, event }: ChoiceEvent): object[] {
    const { choices, times: wanted, postSampling } = this.#shape;
    const { times, record } = choices[index]!;
    if (event.type === "progress") {
      if (!wanted.progress) return [];
      const piece = this.#piece(index, "", []);
      return times.progress(event, wanted).map((told) => ({ ...piece, ...told }));
    }
    if (event.type === "content") {
      const { text, logprobs = [] } = event;
      if (text.includes("\n")) this.#broken.add(index);
      return [
        { ...this.#piece(index, text, record.take()), ...probabilities(logprobs, postSampling) },
      ];
    }
    if (event.type !== "finish") return [];
    const hasNewLine = this.#broken.has(index);
    const end = { content: "", tokens: [], logprobs: [], hasNewLine, finish: event };
    return [wireEnd(end, index, this.#shape)];
  }

  #piece(index: number, content: string, tokens: readonly number[]): object {
    const { choices, times: wanted } = this.#shape;
    const { times, record } = choices[index]!;
    return {
      index,
      content,
      tokens,
      stop: false,
      id_slot: -1,
      tokens_predicted: record.generated.length,
      tokens_evaluated: record.prompt.length,
      ...(wanted.perToken ? { timings: times.timings } : {}),
    };
  }
}

/** What the last event has of an answer; in a stream it was told before. */
interface Ended extends Pick<Answer, "content" | "logprobs" | "finish"> {
  tokens: readonly number[];
  hasNewLine: boolean;
}

function wireEnd(
  { content, tokens, logprobs, hasNewLine, finish }: Ended,
  index: number,
  shape: NativeShape,
): object {
  const { model, stop, maxTokens, topLogprobs, document, contextSize, postSampling } = shape;
  const { prompt, sampling, times } = shape.choices[index]!;
  const { usage, stopString = "" } = finish;
  const whole = {
    index,
    content,
    tokens,
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
      post_sampling_probs: postSampling,
      grammar: document?.kind === "grammar" ? document.text : "",
      stream: shape.stream,
    },
    prompt,
    has_new_line: hasNewLine,
    // The context is full; no text is cut off to make room.
    truncated:
      finish.reason === "length" && usage.promptTokens + usage.generatedTokens >= contextSize,
    stop_type: stopType(finish),
    stopping_word: stopString,
    // The last token was drawn and not computed.
    tokens_cached: usage.promptTokens + Math.max(usage.generatedTokens - 1, 0),
    timings: times.timings,
    ...probabilities(logprobs, postSampling),
  };
  const { responseFields } = shape;
  return responseFields.length === 0 ? whole : pick(whole, responseFields);
}

function probabilities(logprobs: readonly ContentToken[], postSampling: boolean): object {
  if (logprobs.length === 0) return {};
  const wire = ({ token: id, bytes, logprob }: TokenProbability): object => {
    const value = postSampling ? { prob: Math.exp(logprob) } : { logprob: wireLogprob(logprob) };
    return { id, token: tokenText(bytes), bytes: [...bytes], ...value };
  };
  const others = postSampling ? "top_probs" : "top_logprobs";
  return {
    completion_probabilities: logprobs.map((one) => ({
      ...wire(one),
      [others]: one.top.map(wire),
    })),
  };
}

function stopType({ reason, stopString, stopToken }: Finish): "eos" | "word" | "limit" {
  if (reason === "length") return "limit";
  return stopString === undefined && stopToken === undefined ? "eos" : "word";
}

/** What there is of them; of `a/b`, `b` in `a`. */
function pick(whole: object, fields: readonly string[]): object {
  const entries = fields.flatMap((field) => {
    const value = field.split("/").reduce<unknown>(ownEntry, whole);
    return value === undefined ? [] : [[field, value] as const];
  });
  return Object.fromEntries(entries);
}
