/** POST /v1/responses/input_tokens: what a request would take of the context. */

import type { RouteOptions } from "fastify";
import { parseResponsesRequest } from "../../openai/responses/parse-request.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import { resolveTarget, wantedModel } from "../../target.ts";
import type { ResponsesContext } from "./context.ts";

export function inputTokensRoute(context: ResponsesContext): RouteOptions {
  const { services, warnings, responses } = context;
  return {
    method: "POST",
    url: "/v1/responses/input_tokens",
    handler: async (request) => {
      const target = resolveTarget(wantedModel(request.body), context);
      const body = parseResponsesRequest(request.body, target, warnings.warn);
      const { requestedServers } = services;
      const prompt = await responses.prompt(body, requestOwner(request), {
        tools: target.tools,
        requestedServers,
      });
      const messages = target.instruct(prompt.messages);
      const tokens = await target.chat.countPromptTokens({ ...prompt, messages });
      return { object: "response.input_tokens", input_tokens: tokens };
    },
  };
}
