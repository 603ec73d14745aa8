/** POST /v1/responses/{id}/cancel: ends a background response; what was said so far stays. */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ResponsesContext } from "./context.ts";

export function cancelResponseRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/responses/:id/cancel",
    handler: async (request) => {
      const { id } = request.params as { id: string };
      return await responses.cancel(requestOwner(request), id);
    },
  };
}
