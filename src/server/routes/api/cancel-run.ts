/** POST /api/conversations/{id}/runs/{run_id}/cancel: what was said so far stays. */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ConversationsContext } from "./context.ts";

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
