/** POST /v1/chat/completions */

import { chatCompletionFields } from "./fields.ts";
import type { Route } from "../route.ts";
import { inputTokens, answer } from "../body/shapes.ts";
import type { RouteContext } from "../context.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { collectChoices, observeChoices, runChoices, withSeed } from "../answer/choices.ts";
import type { Answer } from "../answer/collect-answer.ts";
import { Preparation, waitForServers, streamAnswer } from "../http/stream-answer.ts";
import { ChunkStream } from "./chunks.ts";
import {
  type ChatCompletion,
  wireCompletion,
  chatCompletion,
  chatCompletionExtras,
} from "./completion.ts";
import { fieldError } from "../body/field.ts";
import { parseChatCompletionRequest, type ChatCompletionRequest } from "./request.ts";
import { newIdentity } from "../answer/completion-parts.ts";
import { ofReplica } from "../answer/ids.ts";
import { countPrompt, planAnswer, runRequest } from "../answer/answer.ts";
import {
  reasoningInContent,
  withBeginning,
  withoutReasoning,
  toolStatusShape,
} from "../answer/client-view.ts";
import { StoredCompletions } from "./stored-completions.ts";
import { TokenRecord } from "../answer/token-record.ts";
import { TokenTimes } from "../answer/token-times.ts";
import { readRequest, type ToolMode } from "../answer/target.ts";

export function chatCompletionsRoute(context: RouteContext): Route {
  const { services, config, active, warnings } = context;
  const keep = async (
    completion: ChatCompletion,
    stored: ChatCompletionRequest["stored"],
    owner: string,
  ): Promise<void> => {
    if (stored === null) return;
    if (services.store === null)
      return warnings.warn("store", "has no effect: this server was started without a store");
    const { metadata, messages } = stored;
    await new StoredCompletions(services.store, owner).add(completion, metadata, messages);
  };
  const idMark = ofReplica(config.replica);
  return {
    at: "POST /v1/chat/completions",
    summary: "An answer in OpenAI's Chat Completions format.",
    request: chatCompletionFields,
    example: { messages: [{ role: "user", content: "Hello!" }] },
    /** A chunk of a chat completion that asked for it: `fermata.tool_status`. */
    streams: {
      "chat.completion.chunk": {
        ...answer({
          tool_status: toolStatusShape,
        }),
        additionalProperties: true,
        description:
          "With fermata.tool_status: beside an empty delta, what a tool of the server's does.",
      },
    },
    answer: answer(chatCompletion, chatCompletionExtras),
    preHandler: waitForServers(context.services.tools),
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const { target, body } = await readRequest(request.body, parseChatCompletionRequest, context);
      const { n, tellsTools } = body;
      const signal = active.signalFor(reply);
      const identity = newIdentity("chatcmpl", target.id, services.model, idMark);
      const { conversation, mode, run } = planAnswer(body, target, {
        request,
        context,
        id: identity.id,
      });
      const preparation = new Preparation();
      if (n > 1) refuseToolRuns(mode);
      reply.headers(context.gaps.report(run.history, request.log));
      const times = Array.from({ length: n }, () => new TokenTimes(context.metrics, startedAt));
      const keepsTokens = body.tokens !== undefined || body.continuousUsage;
      const records = keepsTokens ? Array.from({ length: n }, () => new TokenRecord()) : [];
      const start = (choice: number, ended: AbortSignal, sink: Sink<RunEvent>) => {
        const sampling = withSeed(body.sampling, choice);
        const own = { ...run, preparation, startedAt, tellsTools, times: times[choice]! };
        const chosen = {
          ...conversation,
          sampling,
          signal: ended,
          promptLogprobs: choice === 0 ? body.tokens?.promptLogprobs : undefined,
          ...records[choice]?.listeners,
        };
        return runRequest(chosen, mode, own, shown(body, sink));
      };
      const completed = (answers: [Answer, ...Answer[]]) =>
        wireCompletion(identity, answers, {
          withLogprobs: body.topLogprobs !== undefined,
          customTools: body.customTools,
          timings: times[0]?.timings,
          tokens: body.tokens,
          records,
          tokenBytes: (token) => services.engine.tokenBytes(token),
        });
      const choices = runChoices(n, start, signal);
      const events =
        body.stored === null
          ? choices
          : observeChoices(choices, n, async (answers) =>
              keep(completed(answers), body.stored, conversation.owner),
            );
      if (!body.stream) return completed(await collectChoices(events, n));
      const chunks = new ChunkStream(identity, body, times, records);
      await streamAnswer(events, chunks, { request, reply, config, preparation });
      return reply;
    },
  };
}

/** The events as the request wants to see them. */
function shown(
  { reasonsInContent, hidesReasoning, echoed }: ChatCompletionRequest,
  sink: Sink<RunEvent>,
): Sink<RunEvent> {
  const whole = echoed === "" ? sink : withBeginning(echoed, sink);
  if (hidesReasoning) return withoutReasoning(whole);
  return reasonsInContent ? reasoningInContent(whole) : whole;
}

/** Each choice would run them, and do twice what was to be done once. */
function refuseToolRuns(mode: ToolMode): void {
  if (mode.kind !== "internal") return;
  const remedy = 'Send "n": 1, or "tool_choice": "none"';
  throw fieldError("unsupported_value", "n", "must be 1 while the server runs the tools", remedy);
}

/** POST /v1/chat/completions/input_tokens, as llama-server has it: what a request would take of the context. */
export function chatInputTokensRoute(context: RouteContext): Route {
  return {
    at: "POST /v1/chat/completions/input_tokens",
    summary: "What a request would take of the context.",
    request: chatCompletionFields,
    example: { messages: [{ role: "user", content: "Hello!" }] },
    answer: inputTokens,
    preHandler: waitForServers(context.services.tools),
    handler: async (request) => {
      const { target, body } = await readRequest(request.body, parseChatCompletionRequest, context);
      const inputTokens = await countPrompt(body, target, request);
      return { object: "response.input_tokens", input_tokens: inputTokens };
    },
  };
}
