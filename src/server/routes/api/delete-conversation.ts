/** DELETE /api/conversations/{id}: what runs in it is cancelled. */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
