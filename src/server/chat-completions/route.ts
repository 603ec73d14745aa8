/** POST /v1/chat/completions */

import type { RouteOptions } from "fastify";
import { finishInTurns } from "../../parts.ts";
import type { RouteContext } from "../context.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { TokenLogprobs } from "../../engine/types.ts";
import type { RunEvent } from "../../tools/types.ts";
import { collectChoices, observeChoices, runChoices, withSeed } from "../answer/choices.ts";
import type { Answer } from "../answer/collect-answer.ts";
import { callsOfMessages } from "../http/history-gaps.ts";
import { waitForServers, Preparation, streamAnswer } from "../http/stream-answer.ts";
import { ChunkStream } from "./chunks.ts";
import { chatCompletion, type ChatCompletion } from "./completion.ts";
import { fieldError } from "../body/field.ts";
import { parseChatCompletionRequestInParts, type ChatCompletionRequest } from "./request.ts";
import { checkToolChoice } from "../body/tools.ts";
import { requestOwner } from "../http/access.ts";
import { newIdentity } from "../answer/completion-parts.ts";
import { ofReplica } from "../answer/ids.ts";
import { runRequest } from "../answer/answer.ts";
import { reasoningInContent, withBeginning, withoutReasoning } from "../answer/client-view.ts";
import { StoredCompletions } from "./stored-completions.ts";
import { TokenRecord } from "../answer/token-record.ts";
import { TokenTimes } from "../answer/token-times.ts";
import { answerOf } from "../answer/traces.ts";
import {
  resolveTarget,
  wantedModel,
  definitionsOf,
  resolveToolMode,
  type ToolMode,
} from "../answer/target.ts";

export function chatCompletionsRoute(context: RouteContext): RouteOptions {
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
    method: "POST",
    url: "/v1/chat/completions",
    preHandler: waitForServers(context.services.tools),
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const target = resolveTarget(wantedModel(request.body), context);
      const body = await finishInTurns(
        parseChatCompletionRequestInParts(request.body, target, warnings.warn),
      );
      const {
        messages,
        prefill,
        openTurn,
        templateVariables,
        stop,
        maxTokens,
        guidance,
        topLogprobs,
        cacheSalt,
        n,
      } = body;
      const signal = active.signalFor(reply);
      const owner = requestOwner(request);
      const conversation = {
        messages: target.instruct(messages),
        prefill,
        openTurn,
        templateVariables,
        stop,
        maxTokens,
        guidance,
        topLogprobs,
        owner,
        cacheSalt,
      };
      const mode = resolveToolMode(body, target.tools);
      checkToolChoice(body.toolChoice, definitionsOf(mode));
      if (n > 1) refuseToolRuns(mode);
      const history = { owner, conversationKey: null, calls: callsOfMessages(messages) };
      reply.headers(context.gaps.report(history, request.log));
      const { tellsTools } = body;
      const preparation = new Preparation();
      const times = Array.from({ length: n }, () => new TokenTimes(context.metrics, startedAt));
      const keepsTokens = body.tokens !== undefined || body.continuousUsage;
      const records = keepsTokens ? Array.from({ length: n }, () => new TokenRecord()) : [];
      const identity = newIdentity("chatcmpl", target.id, services.model, idMark);
      const run = {
        ...context,
        target,
        answer: answerOf(request, identity.id),
        log: request.log,
        startedAt,
        history,
        tellsTools,
        preparation,
      };
      const start = (choice: number, ended: AbortSignal, sink: Sink<RunEvent>) => {
        const sampling = withSeed(body.sampling, choice);
        const own = { ...run, times: times[choice]! };
        const record = records[choice];
        const asked = {
          ...conversation,
          sampling,
          signal: ended,
          promptLogprobs: choice === 0 ? body.tokens?.promptLogprobs : undefined,
          onPrompt: (tokens: Int32Array) => {
            if (record !== undefined) record.prompt = tokens;
          },
          onPromptLogprobs: (told: TokenLogprobs[]) => record?.addPromptLogprobs(told),
          onTokens: (_: number, tokens?: Int32Array) => tokens && record?.add(tokens),
        };
        return runRequest(asked, mode, own, shown(body, sink));
      };
      const completed = (answers: [Answer, ...Answer[]]) =>
        chatCompletion(identity, answers, {
          withLogprobs: topLogprobs !== undefined,
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
              keep(completed(answers), body.stored, owner),
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
export function chatInputTokensRoute(context: RouteContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/chat/completions/input_tokens",
    preHandler: waitForServers(context.services.tools),
    handler: async (request) => {
      const target = resolveTarget(wantedModel(request.body), context);
      const body = await finishInTurns(
        parseChatCompletionRequestInParts(request.body, target, context.warnings.warn),
      );
      const prompt = {
        messages: target.instruct(body.messages),
        prefill: body.prefill,
        openTurn: body.openTurn,
        templateVariables: body.templateVariables,
        tools: [...definitionsOf(resolveToolMode(body, target.tools))],
        owner: requestOwner(request),
      };
      const inputTokens = await target.chat.countPromptTokens(prompt, { mayExceed: true });
      return { object: "response.input_tokens", input_tokens: inputTokens };
    },
  };
}
