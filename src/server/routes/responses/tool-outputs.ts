/** POST /v1/responses/{id}/tool_outputs: the result of a call that a held response waits for. */

import type { RouteOptions } from "fastify";
import { parseToolOutput } from "../../openai/responses/parse-tool-output.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ResponsesContext } from "./context.ts";

export function toolOutputsRoute({ responses, config }: ResponsesContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/responses/:id/tool_outputs",
    handler: async (request) => {
      const { id } = request.params as { id: string };
      const { callId, output } = parseToolOutput(request.body, config.maxToolOutputBytes);
      responses.deliver(requestOwner(request), id, callId, output);
      return { id, status: "in_progress" };
    },
  };
}
