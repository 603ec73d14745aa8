/** POST /detokenize, as llama-server has it. */

import type { RouteOptions } from "fastify";
import { expectBody, fieldError } from "../openai/fields.ts";
import { parseTokens } from "../openai/parse-tokens.ts";
import type { ServerServices } from "../services.ts";

export function detokenizeRoute({ engine, model }: ServerServices): RouteOptions {
  return {
    method: "POST",
    url: "/detokenize",
    handler: async ({ body }): Promise<{ content: string }> => {
      const remedy = 'Send {"tokens": […]}';
      expectBody(body, remedy);
      const { tokens } = body;
      if (tokens === undefined) throw fieldError("missing_field", "tokens", "is missing", remedy);
      if (Array.isArray(tokens) && tokens.length === 0) return { content: "" };
      return { content: engine.detokenize(parseTokens(tokens, "tokens", model.vocabularySize)) };
    },
  };
}
