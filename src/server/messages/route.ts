/** POST /v1/messages, Anthropic's wire format. */

import { randomBytes } from "node:crypto";
import type { RouteOptions } from "fastify";
import type { RouteContext } from "../context.ts";
import type { PromptRequest } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import { exactJson } from "../../json.ts";
import { collectMessage, MessageStream } from "./message-stream.ts";
import { finishInTurns } from "../../parts.ts";
import { parseMessagesRequest, parseCountRequest } from "./request.ts";
import { Preparation, waitForServers, streamAnswer } from "../http/stream-answer.ts";
import { pulled } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { countPrompt, messagesFor, planAnswer, runRequest } from "../answer/answer.ts";
import { promptToolsOf, readRequest, resolveTarget, type Target } from "../answer/target.ts";

export function messagesRoute(context: RouteContext): RouteOptions {
  const { config, active } = context;
  return {
    method: "POST",
    url: "/v1/messages",
    preHandler: waitForServers(context.services.tools),
    config: { wire: "anthropic" },
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const { target, body } = await readRequest(request.body, parseMessagesRequest, context);
      const signal = active.signalFor(reply);
      const identity = { id: `msg_${randomBytes(12).toString("hex")}`, model: target.id };
      const { conversation, mode, run } = planAnswer(body, target, {
        request,
        context,
        id: identity.id,
      });
      const preparation = new Preparation();
      reply.headers(context.gaps.report(run.history, request.log));
      const events = pulled<RunEvent, void>((sink) =>
        runRequest({ ...conversation, signal }, mode, { ...run, preparation, startedAt }, sink),
      );
      if (!body.stream) {
        const message = await collectMessage(identity, events);
        return reply.type("application/json; charset=utf-8").send(exactJson(message));
      }
      const tools = [...promptToolsOf(mode)];
      const messages = messagesFor(mode, conversation.messages);
      const inputTokens = await countedTokens(target.chat, { ...conversation, messages, tools });
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
      const body = await finishInTurns(parseCountRequest(request.body, warnings.warn));
      const target = resolveTarget(body.model, context);
      return { input_tokens: await countPrompt(body, target, request) };
    },
  };
}
