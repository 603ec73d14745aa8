import type { RouteOptions } from "fastify";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import { requestOwner } from "../http/authentication.ts";
import { parseResponsesRequest } from "./request.ts";
import type { ResponsesContext } from "./context.ts";

/** POST /v1/responses/input_tokens: what a request would take of the context. */
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
