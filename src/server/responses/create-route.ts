import type { RouteOptions } from "fastify";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import { requestOwner } from "../http/authentication.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { waitForServers } from "../http/missing-servers.ts";
import { Preparation } from "../http/preparation.ts";
import { parseResponsesRequest } from "./request.ts";
import { ResponseEventStream } from "./response-event-stream.ts";
import type { ResponsesContext } from "./context.ts";
import type { WireEvent } from "./types.ts";

/** POST /v1/responses and, for clients that were made for it, POST /codex/responses. */
export function createResponseRoute(context: ResponsesContext, url: string): RouteOptions {
  const { config, active, warnings, responses } = context;
  return {
    method: "POST",
    url,
    preHandler: waitForServers(context.services.tools),
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const target = resolveTarget(wantedModel(request.body), context);
      const body = parseResponsesRequest(request.body, target, warnings.warn);
      const preparation = new Preparation();
      const started = await responses.start(body, {
        ...context,
        target,
        log: request.log,
        startedAt,
        owner: requestOwner(request),
        signal: active.signalFor(reply),
        preparation,
      });
      if (started.kind === "resumed") return { id: started.id, status: "in_progress" };
      const { run, headers } = started;
      reply.headers(headers);
      if (body.background && !body.stream) return run.response;
      const events = run.read(-1);
      if (!body.stream) return await lastResponse(events);
      await streamAnswer(events, new ResponseEventStream(), {
        request,
        reply,
        config,
        preparation,
      });
      return reply;
    },
  };
}

async function lastResponse(events: AsyncIterable<WireEvent>): Promise<unknown> {
  let last: unknown = null;
  for await (const event of events) last = event["response"];
  return last;
}
