/** POST /v1/chat/completions */

import { randomBytes } from "node:crypto";
import type { RouteOptions } from "fastify";
import { collectAnswer } from "../collect-answer.ts";
import type { Metrics } from "../metrics.ts";
import { ChunkStream } from "../openai/chunk-stream.ts";
import { ChunkMapper } from "../openai/chunks.ts";
import { chatCompletion, type ResponseIdentity } from "../openai/completion.ts";
import { parseChatCompletionRequest } from "../openai/parse-request.ts";
import type { OnceWarnings } from "../openai/warnings.ts";
import type { ActiveRequests } from "../plugins/active-requests.ts";
import { requestOwner } from "../plugins/authentication.ts";
import { drawSeed, runRequest } from "../run-request.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import { streamAnswer } from "../stream-answer.ts";
import { resolveToolMode } from "../tool-mode.ts";

export interface RouteContext {
  services: ServerServices;
  config: ServerConfig;
  metrics: Metrics;
  active: ActiveRequests;
  warnings: OnceWarnings;
}

export function chatCompletionsRoute(context: RouteContext): RouteOptions {
  const { services, config, active, warnings } = context;
  return {
    method: "POST",
    url: "/v1/chat/completions",
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const { model } = services;
      const body = parseChatCompletionRequest(
        request.body,
        { ...model, sampling: { ...config.sampling, seed: drawSeed(), logitBias: [] } },
        warnings.warn,
      );
      warnOfModel(body.model, context);
      const { messages, sampling, stop, maxTokens, stream, includeUsage } = body;
      const signal = active.signalFor(reply);
      const conversation = {
        messages,
        sampling,
        stop,
        maxTokens,
        signal,
        owner: requestOwner(request),
      };
      const mode = resolveToolMode(body, services.tools);
      const events = runRequest(conversation, mode, { ...context, log: request.log, startedAt });
      const identity = createIdentity(model.id);
      if (!stream) return chatCompletion(identity, await collectAnswer(events));
      const chunks = new ChunkStream(new ChunkMapper(identity, includeUsage));
      await streamAnswer(events, chunks, { request, reply, config });
      return reply;
    },
  };
}

function createIdentity(model: string): ResponseIdentity {
  return {
    id: `chatcmpl-${randomBytes(12).toString("hex")}`,
    created: Math.floor(Date.now() / 1000),
    model,
  };
}

/** One model is loaded, and answers to every name. */
export function warnOfModel(wanted: string | null, { services, warnings }: RouteContext): void {
  const { id } = services.model;
  if (wanted === null || wanted === "default" || wanted === id) return;
  warnings.warn(`model=${wanted}`, `names a model that is not loaded; ${id} answers`);
}
