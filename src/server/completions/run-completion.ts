/** Text goes on from a prompt: no template, no calls. */

import { AnswerTokens } from "../../chat/answer/answer-tokens.ts";
import type { ChatEvent } from "../../chat/types.ts";
import { withTextBias } from "../../engine/sampling-bias.ts";
import type { GenerateRequest, GenerationEvent } from "../../engine/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { TokenTimes } from "../answer/token-times.ts";
import type { ServerServices } from "../services.ts";

type Finish = Extract<GenerationEvent, { type: "finish" }>;

/** Pushes content, then `finish`. @throws what ended the generation, the reason of an aborted signal among it */
export async function runCompletion(
  engine: ServerServices["engine"],
  request: GenerateRequest,
  times: TokenTimes,
  sink: Sink<ChatEvent>,
): Promise<void> {
  const tokens = new AnswerTokens((token) => engine.tokenBytes(token));
  const sampling = await withTextBias(request.sampling, engine);
  for await (const event of engine.generate({ ...request, sampling })) {
    if (event.type === "text") {
      tokens.add(event.text, event.logprobs ?? []);
      if (event.text === "") continue;
      const [content] = tokens.attribute([{ type: "content", text: event.text }]);
      if (content === undefined) continue;
      times.observe(content);
      await sink(content);
    } else if (event.type === "finish") {
      if (event.reason === "cancelled") request.signal?.throwIfAborted();
      await sink(chatFinish(event));
    }
  }
}

function chatFinish({ reason, usage }: Finish): ChatEvent {
  return { type: "finish", reason: reason === "length" ? "length" : "stop", calls: [], usage };
}
