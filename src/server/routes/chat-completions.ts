/** POST /v1/chat/completions */

import { randomBytes } from "node:crypto";
import type { RouteOptions } from "fastify";
import { withSeed } from "../choice-seed.ts";
import { collectChoices, runChoices } from "../choices.ts";
import { callsOfMessages, type HistoryGaps } from "../history-gaps.ts";
import type { Metrics } from "../metrics.ts";
import { ChunkStream } from "../openai/chunk-stream.ts";
import { ChunkMapper } from "../openai/chunks.ts";
import { chatCompletion, type ResponseIdentity } from "../openai/completion.ts";
import { fieldError } from "../openai/fields.ts";
import { parseChatCompletionRequest } from "../openai/parse-request.ts";
import { checkToolChoice } from "../openai/parse-tool-choice.ts";
import type { OnceWarnings } from "../openai/warnings.ts";
import type { ActiveRequests } from "../plugins/active-requests.ts";
import { requestOwner } from "../plugins/authentication.ts";
import { runRequest } from "../run-request.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import { streamAnswer } from "../stream-answer.ts";
import { resolveTarget, wantedModel } from "../target.ts";
import { definitionsOf, resolveToolMode, type ToolMode } from "../tool-mode.ts";

export interface RouteContext {
  services: ServerServices;
  config: ServerConfig;
  metrics: Metrics;
  active: ActiveRequests;
  warnings: OnceWarnings;
  gaps: HistoryGaps;
}

export function chatCompletionsRoute(context: RouteContext): RouteOptions {
  const { config, active, warnings } = context;
  return {
    method: "POST",
    url: "/v1/chat/completions",
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const target = resolveTarget(wantedModel(request.body), context);
      const body = parseChatCompletionRequest(request.body, target, warnings.warn);
      const { messages, templateVariables, stop, maxTokens, guidance, topLogprobs, n } = body;
      const signal = active.signalFor(reply);
      const owner = requestOwner(request);
      const conversation = {
        messages: target.instruct(messages),
        templateVariables,
        stop,
        maxTokens,
        guidance,
        topLogprobs,
        owner,
      };
      const mode = resolveToolMode(body, target.tools);
      checkToolChoice(body.toolChoice, definitionsOf(mode));
      if (n > 1) refuseToolRuns(mode);
      const history = { owner, conversationKey: null, calls: callsOfMessages(messages) };
      reply.headers(context.gaps.report(history, request.log));
      const run = { ...context, target, log: request.log, startedAt, history };
      const start = (choice: number, ended: AbortSignal) => {
        const sampling = withSeed(body.sampling, choice);
        return runRequest({ ...conversation, sampling, signal: ended }, mode, run);
      };
      const events = runChoices(n, start, signal);
      const identity = createIdentity(target.id);
      if (!body.stream)
        return chatCompletion(identity, await collectChoices(events, n), topLogprobs !== undefined);
      const chunks = new ChunkStream(new ChunkMapper(identity, body));
      await streamAnswer(events, chunks, { request, reply, config });
      return reply;
    },
  };
}

/** Each choice would run them, and do twice what was to be done once. */
function refuseToolRuns(mode: ToolMode): void {
  if (mode.kind !== "internal") return;
  const remedy = 'Send "n": 1, or "tool_choice": "none"';
  throw fieldError("unsupported_value", "n", "must be 1 while the server runs the tools", remedy);
}

function createIdentity(model: string): ResponseIdentity {
  return {
    id: `chatcmpl-${randomBytes(12).toString("hex")}`,
    created: Math.floor(Date.now() / 1000),
    model,
  };
}
