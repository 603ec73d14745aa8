/** POST /v1/responses/input_tokens: what a request would take of the context. */

import type { RouteOptions } from "fastify";
import { parseResponsesRequest } from "../../openai/responses/parse-request.ts";
import { requestOwner } from "../../plugins/authentication.ts";
import type { ResponsesContext } from "./context.ts";

export function inputTokensRoute(context: ResponsesContext): RouteOptions {
  const { services, config, warnings, responses } = context;
  return {
    method: "POST",
    url: "/v1/responses/input_tokens",
    handler: async (request) => {
      const sampling = { ...config.sampling, seed: 0, logitBias: [] };
      const limits = { ...services.model, sampling };
      const body = parseResponsesRequest(request.body, limits, warnings.warn);
      const prompt = await responses.prompt(body, requestOwner(request), services);
      const tokens = await services.chat.countPromptTokens(prompt);
      return { object: "response.input_tokens", input_tokens: tokens };
    },
  };
}
