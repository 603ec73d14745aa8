/** POST /v1/messages, Anthropic's wire format. */

import { message } from "./message.ts";
import { messageFields } from "./fields.ts";
import type { Route } from "../route.ts";
import { answer, whole } from "../body/shapes.ts";
import { randomBytes } from "node:crypto";
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

export function messagesRoute(context: RouteContext): Route {
  const { config, active } = context;
  return {
    at: "POST /v1/messages",
    summary: "An answer in Anthropic's Messages format.",
    request: messageFields,
    example: { max_tokens: 100, messages: [{ role: "user", content: "Hello!" }] },
    streams: true,
    answer: message,
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
export function messagesCountTokensRoute(context: RouteContext): Route {
  const { warnings } = context;
  return {
    at: "POST /v1/messages/count_tokens",
    summary: "What a message's prompt would take of the context.",
    request: messageFields,
    example: { messages: [{ role: "user", content: "Hello!" }] },
    answer: answer({ input_tokens: whole }),
    preHandler: waitForServers(context.services.tools),
    config: { wire: "anthropic" },
    handler: async (request) => {
      const body = await finishInTurns(parseCountRequest(request.body, warnings.warn));
      const target = resolveTarget(body.model, context);
      return { input_tokens: await countPrompt(body, target, request) };
    },
  };
}
