/** POST /api/conversations */

import type { RouteOptions } from "fastify";
import { parseNewConversation } from "../../conversations/parse-conversation.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
