/** A text continued by the model itself: the engine's events as those of a chat. */

import { AnswerTokens, contentToken } from "../../chat/answer/answer-tokens.ts";
import { withTextBias } from "../../engine/engine.ts";
import type { GenerateRequest, GenerationEvent, Generation } from "../../engine/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { LineLimits } from "../body/line-limits.ts";
import type { ServerServices } from "../services.ts";
import type { AnswerTrace } from "./traces.ts";
import { engineLimit, withinLimit } from "./answer.ts";
import type { TokenRecord } from "./token-record.ts";
import type { TokenTimes } from "./token-times.ts";

type Finish = Extract<GenerationEvent, { type: "finish" }>;
type Text = Extract<GenerationEvent, { type: "text" }>;
type Content = Extract<RunEvent, { type: "content" }>;

interface TextRun {
  times: TokenTimes;
  trace: AnswerTrace;
  record?: TokenRecord;
  lineLimits?: LineLimits;
  /** Tokens are told when they are drawn, also those that no text comes of. Default: with the text that they are part of. */
  tellsAtOnce?: boolean;
}

const noLimits: LineLimits = { indent: 0, milliseconds: 0 };

/** Pushes how far the prompt is read, content, then `finish`. @throws what ended the generation, the reason of an aborted signal among it */
export async function runText(
  engine: ServerServices["engine"],
  request: GenerateRequest,
  { times, trace, record, lineLimits = noLimits, tellsAtOnce = false }: TextRun,
  sink: Sink<RunEvent>,
): Promise<void> {
  const bytesOf = (token: number): Uint8Array => engine.tokenBytes(token);
  const tokens = new AnswerTokens(bytesOf);
  const contentOf = tellsAtOnce
    ? (event: Text) => wholeContent(event, bytesOf)
    : (event: Text) => attributedContent(event, tokens);
  const sampling = await withTextBias(request.sampling, engine);
  const maxTokens = engineLimit(request.maxTokens);
  let drawn = 0;
  times.drew(drawn);
  const asked = { ...request, sampling, maxTokens, watch: trace.watch, client: trace.start.client };
  for await (const event of withinLines(engine.generate(asked), lineLimits)) {
    if (event.type === "progress") {
      times.observe(event);
      await sink(event);
    } else if (event.type === "text") {
      drawn += event.tokens.length;
      if (event.tokens.length > 0) times.drew(drawn);
      if (request.maxTokens === 0) continue;
      record?.add(event.tokens);
      const content = contentOf(event);
      if (content === null) continue;
      times.observe(content);
      await sink(content);
    } else if (event.type === "finish") {
      if (event.reason === "cancelled") request.signal?.throwIfAborted();
      const told = withinLimit(chatFinish(event), request.maxTokens);
      if (told === null) continue;
      // Who reads the prompt's tokens takes what was generated to be at least one more (lm-eval drops the last).
      const silent = request.promptLogprobs === undefined ? [] : tokens.takeSilent();
      if (silent.length > 0) await sink({ type: "content", text: "", logprobs: silent });
      times.observe(told);
      trace.observe(told);
      await sink(told);
    }
  }
}

function wholeContent(
  { text, tokens, logprobs }: Text,
  bytesOf: (token: number) => Uint8Array,
): Content | null {
  if (text === "" && tokens.length === 0) return null;
  const told = logprobs?.map((one) => contentToken(one, bytesOf));
  return { type: "content", text, ...(told === undefined ? {} : { logprobs: told }) };
}

function attributedContent({ text, logprobs = [] }: Text, tokens: AnswerTokens): Content | null {
  tokens.add(text, logprobs);
  if (text === "") return null;
  return tokens.attribute([{ type: "content", text }])[0] as Content;
}

function chatFinish({ reason, usage, stopString, stopToken }: Finish): RunEvent {
  return {
    type: "finish",
    reason: reason === "length" ? "length" : "stop",
    calls: [],
    usage,
    ...(stopString === "" ? {} : { stopString }),
    ...(stopToken === undefined ? {} : { stopToken }),
  };
}

/** The generation's events. At a limit it is cancelled, and ends as one that reached its limit of tokens. */
function withinLines(generation: Generation, limits: LineLimits): AsyncIterable<GenerationEvent> {
  const hasLimit = limits.indent > 0 || limits.milliseconds > 0;
  return hasLimit ? cut(generation, new LineReader(limits)) : generation;
}

async function* cut(
  generation: Generation,
  lines: LineReader,
): AsyncGenerator<GenerationEvent, void, void> {
  let drawn = 0;
  for await (const event of generation) {
    if (event.type === "finish") {
      yield lines.areOver ? atLimit(event, drawn) : event;
    } else if (event.type !== "text") {
      yield event;
    } else if (!lines.areOver) {
      drawn += event.tokens.length;
      const text = lines.read(event.text);
      if (lines.areOver) generation.cancel();
      yield { ...event, text };
    }
  }
}

type End = Extract<GenerationEvent, { type: "finish" }>;

/** @param drawn tokens: the engine may have drawn more before it was cancelled */
function atLimit({ type, usage }: End, drawn: number): End {
  return { type, reason: "length", stopString: "", usage: { ...usage, generatedTokens: drawn } };
}

class LineReader {
  readonly #limits: LineLimits;
  #startedAt: number | null = null;
  /** Spaces and tabs of the line so far; null: it is the first one, or has other characters. */
  #indent: number | null = null;
  #areOver = false;

  constructor(limits: LineLimits) {
    this.#limits = limits;
  }

  get areOver(): boolean {
    return this.#areOver;
  }

  /** @returns what of the text is within the limits */
  read(text: string): string {
    return this.#indented(this.#timely(text));
  }

  #timely(text: string): string {
    const { milliseconds } = this.#limits;
    const now = performance.now();
    this.#startedAt ??= now;
    if (milliseconds <= 0 || now - this.#startedAt <= milliseconds) return text;
    const end = text.indexOf("\n") + 1;
    if (end === 0) return text;
    this.#areOver = true;
    return text.slice(0, end);
  }

  #indented(text: string): string {
    const { indent } = this.#limits;
    if (indent <= 0) return text;
    for (let at = 0; at < text.length; at += 1) {
      const character = text[at]!;
      const isBlank = character === " " || character === "\t";
      if (this.#indent !== null && isBlank) this.#indent += 1;
      else if (this.#indent !== null && this.#indent < indent) {
        this.#areOver = true;
        return text.slice(0, at);
      } else this.#indent = character === "\n" ? 0 : null;
    }
    return text;
  }
}
