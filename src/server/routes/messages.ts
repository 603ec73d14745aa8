/** POST /v1/messages, Anthropic's wire format. */

import { randomBytes } from "node:crypto";
import type { RouteOptions } from "fastify";
import { MessageStream } from "../anthropic/message-stream.ts";
import { wireMessage } from "../anthropic/message.ts";
import { parseMessagesRequest } from "../anthropic/parse-request.ts";
import { collectAnswer } from "../collect-answer.ts";
import { guidanceOf } from "../openai/parse-guidance.ts";
import { checkToolChoice } from "../openai/parse-tool-choice.ts";
import { requestOwner } from "../plugins/authentication.ts";
import { drawSeed, runRequest } from "../run-request.ts";
import { streamAnswer } from "../stream-answer.ts";
import { definitionsOf, resolveToolMode } from "../tool-mode.ts";
import { warnOfModel, type RouteContext } from "./chat-completions.ts";

export function messagesRoute(context: RouteContext): RouteOptions {
  const { services, config, active, warnings } = context;
  return {
    method: "POST",
    url: "/v1/messages",
    config: { wire: "anthropic" },
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const { model } = services;
      const body = parseMessagesRequest(
        request.body,
        { ...model, sampling: { ...config.sampling, seed: drawSeed(), logitBias: [] } },
        warnings.warn,
      );
      warnOfModel(body.model, context);
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
        messages,
        prefill,
        templateVariables,
        sampling,
        stop,
        maxTokens,
        guidance,
        signal,
        owner,
      };
      const mode = resolveToolMode(body, services.tools);
      checkToolChoice(toolChoice, definitionsOf(mode));
      const events = runRequest(conversation, mode, { ...context, log: request.log, startedAt });
      const identity = { id: `msg_${randomBytes(12).toString("hex")}`, model: model.id };
      if (!stream) return wireMessage(identity, await collectAnswer(events));
      await streamAnswer(events, new MessageStream(identity, request.id), {
        request,
        reply,
        config,
      });
      return reply;
    },
  };
}
