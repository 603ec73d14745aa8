/** POST /apply-template, as llama-server has it: the prompt that a chat completion would begin with. */

import type { RouteOptions } from "fastify";
import { readTemplateVariables } from "../body/template-variables.ts";
import type { RouteContext } from "../context.ts";
import { expectBody } from "../body/fields.ts";
import { parseTools } from "../body/tools.ts";
import { readConversation } from "../body/conversation.ts";

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
