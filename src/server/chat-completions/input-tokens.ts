/** POST /v1/chat/completions/input_tokens, as llama-server has it: what a request would take of the context. */

import type { RouteOptions } from "fastify";
import type { RouteContext } from "../context.ts";
import { parseChatCompletionRequest } from "./request.ts";
import { requestOwner } from "../http/authentication.ts";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import { definitionsOf, resolveToolMode } from "../answer/tool-mode.ts";

export function chatInputTokensRoute(context: RouteContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/chat/completions/input_tokens",
    handler: async (request) => {
      const target = resolveTarget(wantedModel(request.body), context);
      const body = parseChatCompletionRequest(request.body, target, context.warnings.warn);
      const inputTokens = await target.chat.countPromptTokens({
        messages: target.instruct(body.messages),
        templateVariables: body.templateVariables,
        tools: [...definitionsOf(resolveToolMode(body, target.tools))],
        owner: requestOwner(request),
      });
      return { object: "response.input_tokens", input_tokens: inputTokens };
    },
  };
}
