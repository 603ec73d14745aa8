/** GET /api/conversations: the last changed first. */

import type { RouteOptions } from "fastify";
import { readConversationPage } from "../../conversations/parse-conversation.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
