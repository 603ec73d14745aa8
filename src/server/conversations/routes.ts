/** Every endpoint below /api/conversations. */

import type { FastifyRequest, RouteOptions } from "fastify";
import { fieldError } from "../body/fields.ts";
import type { RouteContext } from "../context.ts";
import { requestOwner } from "../http/authentication.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { waitForServers } from "../http/missing-servers.ts";
import { parseConversationPatch, parseNewConversation, readConversationPage } from "./fields.ts";
import { parseRunRequest } from "./run-request.ts";
import type { ConversationService } from "./service.ts";
import { ConversationStream } from "./stream.ts";

export interface ConversationsContext extends RouteContext {
  conversations: ConversationService;
}

/** GET /api/conversations: the last changed first. */
export function listConversationsRoute({ conversations }: ConversationsContext): RouteOptions {
  return {
    method: "GET",
    url: "/api/conversations",
    handler: async (request) => {
      const page = readConversationPage(request.query as Record<string, unknown>);
      return await conversations.list(requestOwner(request), page);
    },
  };
}

/** POST /api/conversations */
export function createConversationRoute(context: ConversationsContext): RouteOptions {
  const { conversations, warnings } = context;
  return {
    method: "POST",
    url: "/api/conversations",
    handler: async (request, reply) => {
      const given = parseNewConversation(request.body, warnings.warn);
      reply.code(201);
      return await conversations.create(requestOwner(request), given);
    },
  };
}

/** GET /api/conversations/{id}: with the messages of every branch. */
export function getConversationRoute({ conversations }: ConversationsContext): RouteOptions {
  return {
    method: "GET",
    url: "/api/conversations/:id",
    handler: async (request) => {
      const { id } = request.params as { id: string };
      return await conversations.get(requestOwner(request), id);
    },
  };
}

/** PATCH /api/conversations/{id}: its title, its settings, the branch that is shown. */
export function changeConversationRoute(context: ConversationsContext): RouteOptions {
  const { conversations, warnings } = context;
  return {
    method: "PATCH",
    url: "/api/conversations/:id",
    handler: async (request) => {
      const { id } = request.params as { id: string };
      const patch = parseConversationPatch(request.body, warnings.warn);
      return await conversations.change(requestOwner(request), id, patch);
    },
  };
}

/** DELETE /api/conversations/{id}: what runs in it is cancelled. */
export function deleteConversationRoute({ conversations }: ConversationsContext): RouteOptions {
  return {
    method: "DELETE",
    url: "/api/conversations/:id",
    handler: async (request, reply) => {
      const { id } = request.params as { id: string };
      await conversations.delete(requestOwner(request), id);
      return reply.code(204).send();
    },
  };
}

/** POST /api/conversations/{id}/runs: a message is answered, whether somebody looks or not. */
export function startRunRoute(context: ConversationsContext): RouteOptions {
  const { conversations, warnings } = context;
  return {
    method: "POST",
    url: "/api/conversations/:id/runs",
    preHandler: waitForServers(context.services.tools),
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const { id } = request.params as { id: string };
      const body = parseRunRequest(request.body, warnings.warn);
      const run = { ...context, log: request.log, startedAt };
      const started = await conversations.startRun(requestOwner(request), id, body, run);
      return reply.code(202).send(started);
    },
  };
}

/** POST /api/conversations/{id}/runs/{run_id}/cancel: what was said so far stays. */
export function cancelRunRoute({ conversations }: ConversationsContext): RouteOptions {
  return {
    method: "POST",
    url: "/api/conversations/:id/runs/:run_id/cancel",
    handler: async (request, reply) => {
      const { id, run_id: runId } = request.params as { id: string; run_id: string };
      await conversations.cancelRun(requestOwner(request), id, runId);
      return reply.code(202).send({ run_id: runId });
    },
  };
}

/**
 * GET /api/conversations/{id}/stream: a run's events from the first on, or those after Last-Event-ID. A
 * client that has read them all gets 204 and comes no more.
 */
export function conversationStreamRoute(context: ConversationsContext): RouteOptions {
  const { conversations, config } = context;
  return {
    method: "GET",
    url: "/api/conversations/:id/stream",
    exposeHeadRoute: false,
    config: { takesStreamToken: true },
    handler: async (request, reply) => {
      const { id } = request.params as { id: string };
      const query = request.query as Record<string, string | undefined>;
      const withDetails = query["details"] === "1";
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const wanted = {
        runId: query["run_id"] ?? null,
        after: readLastEventId(request),
        withDetails,
      };
      const owner = requestOwner(request);
      const events = await conversations.events(owner, id, wanted, gone.signal);
      if (events === null) return reply.code(204).send();
      await streamAnswer(events, new ConversationStream(withDetails), { request, reply, config });
      return reply;
    },
  };
}

function readLastEventId({ headers }: FastifyRequest): number {
  const id = headers["last-event-id"];
  if (id === undefined || id === "") return 0;
  if (typeof id === "string" && /^\d{1,9}$/.test(id)) return Number(id);
  throw fieldError(
    "invalid_value",
    "last-event-id",
    "is no id of this stream",
    "Send the id of the last event that was read",
  );
}
