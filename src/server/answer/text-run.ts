/** A text continued by the model itself: the engine's events as those of a chat. */

import { AnswerTokens } from "../../chat/answer/answer-tokens.ts";
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

interface TextRun {
  times: TokenTimes;
  trace: AnswerTrace;
  record?: TokenRecord;
  lineLimits?: LineLimits;
}

const noLimits: LineLimits = { indent: 0, milliseconds: 0 };

/** Pushes how far the prompt is read, content, then `finish`. @throws what ended the generation, the reason of an aborted signal among it */
export async function runText(
  engine: ServerServices["engine"],
  request: GenerateRequest,
  { times, trace, record, lineLimits = noLimits }: TextRun,
  sink: Sink<RunEvent>,
): Promise<void> {
  const tokens = new AnswerTokens((token) => engine.tokenBytes(token));
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
      tokens.add(event.text, event.logprobs ?? []);
      if (event.text === "") continue;
      const [content] = tokens.attribute([{ type: "content", text: event.text }]);
      if (content === undefined) continue;
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

export function chatFinish({ reason, usage, stopString, stopToken }: Finish): RunEvent {
  return {
    type: "finish",
    reason: reason === "length" ? "length" : "stop",
    calls: [],
    usage,
    ...(stopString === "" ? {} : { stopString }),
    ...(stopToken === undefined ? {} : { stopToken }),
  };
}
