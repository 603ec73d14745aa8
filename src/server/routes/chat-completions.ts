/** POST /v1/chat/completions */

import { randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import type { ChatEvent } from "../../chat/types.ts";
import type { Metrics } from "../metrics.ts";
import { ChunkMapper } from "../openai/chunks.ts";
import { chatCompletion, type Answer, type ResponseIdentity } from "../openai/completion.ts";
import { errorBody } from "../openai/error-body.ts";
import { parseChatCompletionRequest } from "../openai/parse-request.ts";
import type { OnceWarnings } from "../openai/warnings.ts";
import type { ActiveRequests } from "../plugins/active-requests.ts";
import { requestOwner } from "../plugins/authentication.ts";
import { logError, toFermataError } from "../plugins/errors.ts";
import { SseStream } from "../plugins/sse.ts";
import { drawSeed, runRequest } from "../run-request.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import { resolveToolMode } from "../tool-mode.ts";

export interface RouteContext {
  services: ServerServices;
  config: ServerConfig;
  metrics: Metrics;
  active: ActiveRequests;
  warnings: OnceWarnings;
}

/** A failure within this time still gets its HTTP status; then the stream opens, so that a queued client hears of it. */
const openStreamAfterMs = 500;
const defaultKeepAliveMs = 15_000;

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
      if (!stream) return chatCompletion(identity, await collect(events));
      await streamEvents(events, new ChunkMapper(identity, includeUsage), {
        request,
        reply,
        config,
      });
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
function warnOfModel(wanted: string | null, { services, warnings }: RouteContext): void {
  const { id } = services.model;
  if (wanted === null || wanted === "default" || wanted === id) return;
  warnings.warn(`model=${wanted}`, `names a model that is not loaded; ${id} answers`);
}

async function collect(events: AsyncIterable<ChatEvent>): Promise<Answer> {
  let content = "";
  let reasoning = "";
  for await (const event of events) {
    if (event.type === "content") content += event.text;
    else if (event.type === "reasoning") reasoning += event.text;
    else if (event.type === "finish")
      return { content, reasoning, calls: event.calls, finish: event };
  }
  throw toFermataError(new TypeError("the events ended without finish"));
}

interface StreamTarget {
  request: FastifyRequest;
  reply: FastifyReply;
  config: ServerConfig;
}

async function streamEvents(
  events: AsyncGenerator<ChatEvent, void, void>,
  mapper: ChunkMapper,
  target: StreamTarget,
): Promise<void> {
  const { request, reply, config } = target;
  let pending = events.next();
  await settledWithin(pending, openStreamAfterMs);

  const sse = new SseStream(reply, config.keepAliveMs ?? defaultKeepAliveMs);
  try {
    await sse.send(JSON.stringify(mapper.opening()));
    for (let next = await pending; next.done !== true; next = await pending) {
      for (const chunk of mapper.chunks(next.value)) await sse.send(JSON.stringify(chunk));
      pending = events.next();
    }
    await sse.send("[DONE]");
  } catch (error) {
    const failure = toFermataError(error);
    logError(failure, request);
    await sse.send(JSON.stringify(errorBody(failure)));
  } finally {
    sse.end();
  }
}

/** Waits for `promise`, but not for long. @throws its error, if it fails in that time */
async function settledWithin(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  promise.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
