/** What can be asked of a response that exists, by its id. */

import type { RouteOptions } from "fastify";
import { pageOf, readPageQuery } from "../body/page.ts";
import { requestOwner } from "../http/authentication.ts";
import type { ResponsesContext } from "./context.ts";
import { parseToolOutput } from "./tool-output.ts";

/** POST /v1/responses/{id}/cancel: ends a background response; what was said so far stays. */
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

/** DELETE /v1/responses/{id} */
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

/** GET /v1/responses/{id}/input_items: everything that the model read, page by page. */
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

/** POST /v1/responses/{id}/tool_outputs: the result of a call that a held response waits for. */
export function toolOutputsRoute({ responses, config, warnings }: ResponsesContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/responses/:id/tool_outputs",
    handler: async (request) => {
      const { id } = request.params as { id: string };
      const { callId, output } = parseToolOutput(
        request.body,
        warnings.warn,
        config.maxToolOutputBytes,
      );
      responses.deliver(requestOwner(request), id, callId, output);
      return { id, status: "in_progress" };
    },
  };
}
