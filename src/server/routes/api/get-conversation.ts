/** GET /api/conversations/{id}: with the messages of every branch. */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
