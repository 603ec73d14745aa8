/** An answer in Ollama's two formats: JSON objects, one per line while it is streamed. */

import { exactJson, isJsonObject, parseExactJson } from "../../json.ts";
import type { FermataError } from "../../errors.ts";
import type { ContentToken, ToolCall } from "../../chat/types.ts";
import type { RunEvent } from "../../tools/types.ts";
import { AnswerCollector } from "../answer/collect-answer.ts";
import { ollamaErrorBody } from "../http/error-replies.ts";
import { wireContentToken } from "../answer/logprobs.ts";
import type { TokenRecord } from "../answer/token-record.ts";
import { jsonMessage, type SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";

/** What is told of a part of the answer. */
interface Part {
  content: string;
  thinking?: string;
  calls?: readonly ToolCall[];
  /** How many calls were told before. */
  callsBefore?: number;
  logprobs?: readonly ContentToken[] | undefined;
}

export type Format = "chat" | "generate";

type Line = Record<string, unknown>;

interface AnswerOptions {
  /** The request waited so long for its model to be in memory. */
  loadMilliseconds?: number | undefined;
  /** By `clock`, when the model was there. Until the answer begins, the request is read. */
  arrivedAt?: number;
  /** Gets the tokens of prompt and answer; none: they are not told. */
  record?: TokenRecord;
  /** Milliseconds. */
  clock?: () => number;
}

/** Of one answer. */
export class OllamaAnswer implements AnswerStream<RunEvent> {
  readonly framing = "lines";
  readonly #model: string;
  readonly #format: Format;
  readonly #clock: () => number;
  readonly #collector = new AnswerCollector();
  readonly #startedAt: number;
  readonly #loadMilliseconds: number;
  readonly #record: TokenRecord | undefined;
  #firstAt: number | null = null;
  #callsTold = 0;

  constructor(
    model: string,
    format: Format,
    {
      loadMilliseconds = 0,
      arrivedAt,
      record,
      clock = () => performance.now(),
    }: AnswerOptions = {},
  ) {
    this.#model = model;
    this.#format = format;
    this.#clock = clock;
    this.#startedAt = clock();
    this.#loadMilliseconds = loadMilliseconds + this.#startedAt - (arrivedAt ?? this.#startedAt);
    this.#record = record;
  }

  waiting(): SseMessage {
    return this.#part({ content: "" });
  }

  messages(event: RunEvent): SseMessage[] {
    this.add(event);
    switch (event.type) {
      case "content":
        // Tokens of which no text can be told yet have logprobs, too.
        return event.text === "" && (event.logprobs ?? []).length === 0
          ? []
          : [this.#part({ content: event.text, logprobs: event.logprobs })];
      case "reasoning":
        return event.text === "" ? [] : [this.#part({ content: "", thinking: event.text })];
      case "call-end":
        return [this.#part({ content: "", calls: [event.call], callsBefore: this.#callsTold++ })];
      case "finish":
        return [jsonMessage(this.#end({ content: "" }))];
      default:
        return [];
    }
  }

  failure(error: FermataError): SseMessage[] {
    return [jsonMessage(ollamaErrorBody(error))];
  }

  add(event: RunEvent): void {
    const isOutput = event.type === "content" || event.type === "reasoning";
    if (isOutput || event.type === "call-start") this.#firstAt ??= this.#clock();
    this.#collector.add(event);
  }

  /** The body, once all events were added. */
  whole(): string {
    const { content, reasoning, calls, logprobs } = this.#collector.answer();
    return exactJson(this.#end({ content, thinking: reasoning, calls, logprobs }));
  }

  /** Of a request that only asks for the model to be loaded, or to leave. */
  withoutText(done_reason: "load" | "unload"): Line {
    return { ...this.#said({ content: "" }), done: true, done_reason };
  }

  #part(part: Part): SseMessage {
    return { data: exactJson({ ...this.#said(part), done: false }) };
  }

  #said(part: Part): Line {
    const head = { model: this.#model, created_at: new Date().toISOString() };
    const { logprobs = [] } = part;
    const said =
      this.#format === "chat"
        ? { message: { role: "assistant", ...wirePart(part, "content") } }
        : wirePart(part, "response");
    return {
      ...head,
      ...said,
      ...(logprobs.length === 0
        ? {}
        : { logprobs: logprobs.map((token) => wireContentToken(token)) }),
    };
  }

  /** What the next request sends as `context`. A limit of 0 draws a token that is none of the answer's. */
  #context(generatedTokens: number): { context?: number[] } {
    if (this.#record === undefined || this.#record.prompt.length === 0) return {};
    const { prompt, generated } = this.#record;
    return { context: generatedTokens === 0 ? [...prompt] : [...prompt, ...generated] };
  }

  #end(part: Part): Line {
    const { finish } = this.#collector.answer();
    const { promptTokens, resumedTokens, generatedTokens } = finish.usage;
    const now = this.#clock();
    const first = this.#firstAt ?? now;
    return {
      ...this.#said(part),
      done: true,
      done_reason: finish.reason === "length" ? "length" : "stop",
      ...this.#context(generatedTokens),
      total_duration: nanoseconds(this.#loadMilliseconds + now - this.#startedAt),
      load_duration: nanoseconds(this.#loadMilliseconds),
      prompt_eval_count: promptTokens + resumedTokens,
      prompt_eval_duration: nanoseconds(first - this.#startedAt),
      eval_count: generatedTokens,
      eval_duration: nanoseconds(now - first),
      ...(finish.warnings === undefined ? {} : { warnings: finish.warnings }),
    };
  }
}

function wirePart(
  { content, thinking = "", calls = [], callsBefore = 0 }: Part,
  name: string,
): Line {
  return {
    [name]: content,
    ...(thinking === "" ? {} : { thinking }),
    ...(calls.length === 0
      ? {}
      : { tool_calls: calls.map((call, index) => wireCall(call, callsBefore + index)) }),
  };
}

function wireCall({ id, name, arguments: text }: ToolCall, index: number): object {
  return { id, function: { index, name, arguments: argumentsOf(text) } };
}

/** Ollama's clients take an object. Other text, which only a call without a mask can have, comes under `text`. */
function argumentsOf(text: string): object {
  const value = parseExactJson(text.trim() === "" ? "{}" : text);
  return isJsonObject(value) ? value : { text };
}

function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1e6);
}
