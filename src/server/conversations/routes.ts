/** Every endpoint below /api/conversations, and the stream of a run's events. */

import type { FastifyRequest, RouteOptions } from "fastify";
import type { NumberedEvent } from "../../store/types.ts";
import { fieldError } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { requestOwner } from "../http/access.ts";
import { idInPath } from "../http/route-paths.ts";
import {
  readerGone,
  waitForServers,
  type AnswerStream,
  streamAnswer,
} from "../http/stream-answer.ts";
import type { SseMessage } from "../http/sse.ts";
import { parseConversationPatch, parseNewConversation, readConversationPage } from "./fields.ts";
import { parseRunRequest } from "./run-request.ts";
import { type ConversationService, plainEvent } from "./service.ts";
import { answerOf } from "../answer/traces.ts";

export interface ConversationsContext extends RouteContext {
  conversations: ConversationService;
}

export function branchedConversationRoutes(context: ConversationsContext): RouteOptions[] {
  const { conversations, warnings } = context;
  return [
    {
      method: "GET",
      url: "/api/conversations",
      /** Lists them, the last changed first. */
      handler: async (request) => {
        const page = readConversationPage(request.query as Record<string, unknown>);
        return await conversations.list(requestOwner(request), page);
      },
    },
    {
      method: "POST",
      url: "/api/conversations",
      handler: async (request, reply) => {
        const given = parseNewConversation(request.body, warnings.warn);
        reply.code(201);
        return await conversations.create(requestOwner(request), given);
      },
    },
    {
      method: "GET",
      url: "/api/conversations/:id",
      /** With the messages of every branch. */
      handler: async (request) => await conversations.get(requestOwner(request), idInPath(request)),
    },
    {
      method: "PATCH",
      url: "/api/conversations/:id",
      /** Its title, its settings, the branch that is shown. */
      handler: async (request) => {
        const patch = parseConversationPatch(request.body, warnings.warn);
        return await conversations.change(requestOwner(request), idInPath(request), patch);
      },
    },
    {
      method: "DELETE",
      url: "/api/conversations/:id",
      /** Cancels its runs. */
      handler: async (request, reply) => {
        await conversations.delete(requestOwner(request), idInPath(request));
        return reply.code(204).send();
      },
    },
    {
      method: "POST",
      url: "/api/conversations/:id/runs",
      preHandler: waitForServers(context.services.tools),
      /** Starts a run that answers a message, with or without viewers. */
      handler: async (request, reply) => {
        const startedAt = performance.now();
        const body = parseRunRequest(request.body, warnings.warn);
        const run = { ...context, answer: answerOf(request), log: request.log, startedAt };
        const owner = requestOwner(request);
        const started = await conversations.startRun(owner, idInPath(request), body, run);
        return reply.code(202).send(started);
      },
    },
    {
      method: "POST",
      url: "/api/conversations/:id/runs/:run_id/cancel",
      /** Ends a run; its output so far stays. */
      handler: async (request, reply) => {
        const { run_id: runId } = request.params as { run_id: string };
        await conversations.cancelRun(requestOwner(request), idInPath(request), runId);
        return reply.code(202).send({ run_id: runId });
      },
    },
    streamRoute(context),
  ];
}

/** A run's events, or those after Last-Event-ID. A client that has read them all gets 204 and stops. */
function streamRoute({ conversations, config }: ConversationsContext): RouteOptions {
  return {
    method: "GET",
    url: "/api/conversations/:id/stream",
    exposeHeadRoute: false,
    config: { takesStreamToken: true },
    handler: async (request, reply) => {
      const query = request.query as Record<string, string | undefined>;
      const withDetails = query["details"] === "1";
      const viewer = readerGone(reply);
      const wanted = {
        runId: query["run_id"] ?? null,
        after: readLastEventId(request),
        withDetails,
      };
      const owner = requestOwner(request);
      const events = await conversations.events(owner, idInPath(request), wanted, viewer);
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
    "is not an id of this stream",
    "Send the id of the last event that was read",
  );
}

/** Unnamed events, numbered, without an end mark. */
class ConversationStream implements AnswerStream<NumberedEvent> {
  readonly isResumable = true;
  readonly #withDetails: boolean;

  constructor(withDetails: boolean) {
    this.#withDetails = withDetails;
  }

  messages({ number, body }: NumberedEvent): SseMessage[] {
    const data = this.#withDetails ? body : plainEvent(body);
    return data === null ? [] : [{ id: String(number), data }];
  }

  /**
   * A failed run has told it: in its message, and in its last event to viewers that asked for details. Where only the
   * reading fails, the viewer comes again with the id of its last event.
   */
  failure(): SseMessage[] {
    return [];
  }
}
