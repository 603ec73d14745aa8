/** POST /api/embed, as Ollama has it. */

import type { RouteOptions } from "fastify";
import type { FermataError } from "../../errors.ts";
import { shortened } from "../answer/embedding.ts";
import { readBody, fieldError } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { embedFields } from "./fields.ts";

export function embedRoute({ services, active, warnings }: RouteContext): RouteOptions {
  const { embedder } = services;
  return {
    method: "POST",
    url: "/api/embed",
    config: { wire: "ollama" },
    handler: async ({ body }, reply) => {
      const startedAt = performance.now();
      if (embedder === undefined) throw noEmbedder(services.model.id);
      const { id, vocabularySize, dimensions: most } = embedder;
      const reading = { warn: warnings.warn, vocabularySize };
      const { input, dimensions = Infinity } = readBody(
        embedFields(most),
        body,
        reading,
        'Send {"input": "…"}',
      );
      const { vectors, tokenCount } = await embedder.embed(input, active.signalFor(reply));
      return {
        model: id,
        embeddings: vectors.map((vector) => Array.from(shortened(vector, dimensions))),
        total_duration: Math.round((performance.now() - startedAt) * 1e6),
        load_duration: 0,
        prompt_eval_count: tokenCount,
      };
    },
  };
}

function noEmbedder(model: string): FermataError {
  const problem = `gives no embeddings: ${model} generates text`;
  return fieldError("unsupported_value", "model", problem, "Start with --embedding-model FILE");
}
