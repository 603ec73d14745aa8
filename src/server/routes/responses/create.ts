/** POST /v1/responses and, for clients with a base URL of their own habit, POST /codex/responses. */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import { drawSeed } from "../../run-request.ts";
import { parseResponsesRequest } from "../../openai/responses/parse-request.ts";
import { ResponseEventStream } from "../../openai/responses/response-event-stream.ts";
import { streamAnswer } from "../../stream-answer.ts";
import type { RouteContext } from "../chat-completions.ts";
import { startResponse } from "../../responses/start-response.ts";

export function createResponseRoute(context: RouteContext, url: string): RouteOptions {
  const { services, config, active, warnings } = context;
  return {
    method: "POST",
    url,
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const sampling = { ...config.sampling, seed: drawSeed(), logitBias: [] };
      const body = parseResponsesRequest(
        request.body,
        { ...services.model, sampling },
        warnings.warn,
      );
      const started = startResponse(body, {
        ...context,
        log: request.log,
        startedAt,
        owner: requestOwner(request),
        signal: active.signalFor(reply),
      });
      if (body.stream) {
        await streamAnswer(started.events, new ResponseEventStream(), { request, reply, config });
        return reply;
      }
      let last: unknown;
      for await (const event of started.events) last = event["response"];
      return last;
    },
  };
}
