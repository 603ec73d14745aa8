/**
 * GET /api/conversations/{id}/stream: a run's events from the first on, or those after Last-Event-ID. A
 * client that has read them all gets 204 and comes no more.
 */

import type { FastifyRequest, RouteOptions } from "fastify";
import { ConversationStream } from "../../conversations/conversation-stream.ts";
import { fieldError } from "../../openai/fields.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import { streamAnswer } from "../../stream-answer.ts";
import type { ConversationsContext } from "./context.ts";

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
