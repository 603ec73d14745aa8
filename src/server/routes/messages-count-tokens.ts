/** POST /v1/messages/count_tokens: what a message's prompt would cost, without running it. */

import type { RouteOptions } from "fastify";
import { parseCountRequest } from "../anthropic/parse-request.ts";
import { requestOwner } from "../plugins/authentication.ts";
import { resolveToolMode } from "../tool-mode.ts";
import { warnOfModel, type RouteContext } from "./chat-completions.ts";

export function messagesCountTokensRoute(context: RouteContext): RouteOptions {
  const { services, warnings } = context;
  return {
    method: "POST",
    url: "/v1/messages/count_tokens",
    config: { wire: "anthropic" },
    handler: async (request) => {
      const body = parseCountRequest(request.body, warnings.warn);
      warnOfModel(body.model, context);
      const mode = resolveToolMode(body, services.tools);
      const tools =
        mode.kind === "internal"
          ? mode.tools.map(({ definition }) => definition)
          : mode.kind === "external"
            ? mode.tools
            : [];
      const inputTokens = await services.chat.countPromptTokens({
        messages: body.messages,
        prefill: body.prefill,
        templateVariables: body.templateVariables,
        tools,
        owner: requestOwner(request),
      });
      return { input_tokens: inputTokens };
    },
  };
}
