/** A text continued by the model itself: the engine's events as those of a chat. */

import { AnswerTokens, contentToken } from "../../chat/answer/answer-tokens.ts";
import { withTextBias } from "../../engine/engine.ts";
import type { GenerateRequest, GenerationEvent } from "../../engine/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { LineLimits } from "../body/line-limits.ts";
import type { ServerServices } from "../services.ts";
import type { AnswerTrace } from "./traces.ts";
import { engineLimit, withinLimit } from "./answer.ts";
import type { TokenRecord } from "./token-record.ts";
import type { TokenTimes } from "./token-times.ts";
import { withinLines } from "./within-lines.ts";

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
