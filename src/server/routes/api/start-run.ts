/** POST /api/conversations/{id}/runs: a message is answered, whether somebody looks or not. */

import type { RouteOptions } from "fastify";
import { parseRunRequest } from "../../conversations/parse-run.ts";
import { waitForServers } from "../../missing-servers.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
