/** POST /v1/messages, Anthropic's wire format. */

import { randomBytes } from "node:crypto";
import type { RouteOptions } from "fastify";
import type { RouteContext } from "../context.ts";
import type { PromptRequest } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import { MessageStream } from "./message-stream.ts";
import { collectMessage } from "./message.ts";
import { finishInTurns } from "../../parts.ts";
import { parseMessagesRequestInParts, parseCountRequestInParts } from "./request.ts";
import { callsOfMessages } from "../http/history-gaps.ts";
import { waitForServers, Preparation, streamAnswer } from "../http/stream-answer.ts";
import { guidanceOf } from "../body/guidance.ts";
import { checkToolChoice } from "../body/tools.ts";
import { requestOwner } from "../http/access.ts";
import { pulled } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { runRequest } from "../answer/answer.ts";
import { answerOf } from "../answer/traces.ts";
import {
  resolveTarget,
  type Target,
  wantedModel,
  definitionsOf,
  resolveToolMode,
} from "../answer/target.ts";

export function messagesRoute(context: RouteContext): RouteOptions {
  const { config, active, warnings } = context;
  return {
    method: "POST",
    url: "/v1/messages",
    preHandler: waitForServers(context.services.tools),
    config: { wire: "anthropic" },
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const target = resolveTarget(wantedModel(request.body), context);
      const body = await finishInTurns(
        parseMessagesRequestInParts(request.body, target, warnings.warn),
      );
      const { messages, prefill, templateVariables, sampling, stop, maxTokens, stream } = body;
      const owner = requestOwner(request);
      const signal = active.signalFor(reply);
      const { toolChoice } = body;
      const guidance = guidanceOf(toolChoice, {
        document: body.document,
        parallel: toolChoice.parallel,
        closeAtLimit: false,
      });
      const conversation = {
        messages: target.instruct(messages),
        prefill,
        templateVariables,
        sampling,
        stop,
        maxTokens,
        guidance,
        signal,
        owner,
      };
      const mode = resolveToolMode(body, target.tools);
      checkToolChoice(toolChoice, definitionsOf(mode));
      const history = { owner, conversationKey: null, calls: callsOfMessages(messages) };
      reply.headers(context.gaps.report(history, request.log));
      const preparation = new Preparation();
      const identity = { id: `msg_${randomBytes(12).toString("hex")}`, model: target.id };
      const answer = answerOf(request, identity.id);
      const run = { ...context, target, answer, log: request.log, startedAt, history, preparation };
      const events = pulled<RunEvent, void>((sink) => runRequest(conversation, mode, run, sink));
      if (!stream) return await collectMessage(identity, events);
      const tools = [...definitionsOf(mode)];
      const inputTokens = await countedTokens(target.chat, { ...conversation, tools });
      const messageStream = new MessageStream(identity, request.id, inputTokens);
      await streamAnswer(events, messageStream, { request, reply, config, preparation });
      return reply;
    },
  };
}

/** 0 where another server counts its own. */
async function countedTokens(chat: Target["chat"], request: PromptRequest): Promise<number> {
  try {
    return await chat.countPromptTokens(request);
  } catch (error) {
    if (error instanceof FermataError && error.code === "unsupported_value") return 0;
    throw error;
  }
}

/** POST /v1/messages/count_tokens: what a message's prompt would cost, without running it. */
export function messagesCountTokensRoute(context: RouteContext): RouteOptions {
  const { warnings } = context;
  return {
    method: "POST",
    url: "/v1/messages/count_tokens",
    preHandler: waitForServers(context.services.tools),
    config: { wire: "anthropic" },
    handler: async (request) => {
      const body = await finishInTurns(parseCountRequestInParts(request.body, warnings.warn));
      const target = resolveTarget(body.model, context);
      const prompt = {
        messages: target.instruct(body.messages),
        prefill: body.prefill,
        templateVariables: body.templateVariables,
        tools: [...definitionsOf(resolveToolMode(body, target.tools))],
        owner: requestOwner(request),
      };
      const inputTokens = await target.chat.countPromptTokens(prompt, { mayExceed: true });
      return { input_tokens: inputTokens };
    },
  };
}
