/** POST /v1/messages/count_tokens: what a message's prompt would cost, without running it. */

import type { RouteOptions } from "fastify";
import type { RouteContext } from "../context.ts";
import { parseCountRequest } from "./request.ts";
import { requestOwner } from "../http/authentication.ts";
import { resolveTarget } from "../answer/target.ts";
import { definitionsOf, resolveToolMode } from "../answer/tool-mode.ts";

export function messagesCountTokensRoute(context: RouteContext): RouteOptions {
  const { warnings } = context;
  return {
    method: "POST",
    url: "/v1/messages/count_tokens",
    config: { wire: "anthropic" },
    handler: async (request) => {
      const body = parseCountRequest(request.body, warnings.warn);
      const target = resolveTarget(body.model, context);
      const inputTokens = await target.chat.countPromptTokens({
        messages: target.instruct(body.messages),
        prefill: body.prefill,
        templateVariables: body.templateVariables,
        tools: [...definitionsOf(resolveToolMode(body, target.tools))],
        owner: requestOwner(request),
      });
      return { input_tokens: inputTokens };
    },
  };
}
