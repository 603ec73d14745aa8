/** PATCH /api/conversations/{id}: its title, its settings, the branch that is shown. */

import type { RouteOptions } from "fastify";
import { parseConversationPatch } from "../../conversations/parse-conversation.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
