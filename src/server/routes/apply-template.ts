/** POST /apply-template, as llama-server has it: the prompt that a chat completion would begin with. */

import type { RouteOptions } from "fastify";
import { expectBody } from "../openai/fields.ts";
import { readTemplateVariables } from "../openai/parse-request.ts";
import { parseTools } from "../openai/parse-tools.ts";
import { readConversation } from "../openai/read-conversation.ts";
import type { RouteContext } from "./chat-completions.ts";

export function applyTemplateRoute({ services, warnings }: RouteContext): RouteOptions {
  return {
    method: "POST",
    url: "/apply-template",
    handler: async ({ body }): Promise<{ prompt: string }> => {
      const remedy = 'Send {"messages": […]}';
      expectBody(body, remedy);
      const prompt = services.chat.promptText({
        ...readConversation(body, warnings.warn),
        tools: parseTools(body["tools"], warnings.warn) ?? [],
        templateVariables: readTemplateVariables(body),
      });
      return { prompt };
    },
  };
}
