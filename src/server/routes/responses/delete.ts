/** DELETE /v1/responses/{id} */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ResponsesContext } from "./context.ts";

export function deleteResponseRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "DELETE",
    url: "/v1/responses/:id",
    handler: async (request) => {
      const { id } = request.params as { id: string };
      await responses.delete(requestOwner(request), id);
      return { id, object: "response", deleted: true };
    },
  };
}
