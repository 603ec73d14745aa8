/** GET /v1/responses/{id}/input_items: everything that the model read, page by page. */

import type { RouteOptions } from "fastify";
import { pageOf, readPageQuery } from "../../openai/responses/page.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ResponsesContext } from "./context.ts";

export function inputItemsRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "GET",
    url: "/v1/responses/:id/input_items",
    handler: async (request) => {
      const page = readPageQuery(request.query as Record<string, unknown>);
      const { id } = request.params as { id: string };
      return pageOf(await responses.inputItems(requestOwner(request), id), page);
    },
  };
}
