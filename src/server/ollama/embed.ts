/** POST /api/embed and /api/embeddings, as Ollama has them. */

import type { RouteOptions } from "fastify";
import { embedderOf, inputField, shortened } from "../answer/other-models.ts";
import { asCalled } from "../answer/target.ts";
import { readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { embedFields, oneEmbeddingFields } from "./fields.ts";

export function embedRoutes(context: RouteContext): RouteOptions[] {
  return [embedRoute(context), oneEmbeddingRoute(context)];
}

function embedRoute(context: RouteContext): RouteOptions {
  const { active, warnings } = context;
  return {
    method: "POST",
    url: "/api/embed",
    config: { wire: "ollama" },
    handler: async ({ body }, reply) => {
      const startedAt = performance.now();
      const embedder = embedderOf(context);
      const { id, dimensions: most } = embedder;
      const reading = { warn: warnings.warn };
      const {
        input,
        truncate,
        dimensions = Infinity,
      } = readBody(embedFields(most), body, reading, 'Send {"input": "…"}');
      const { vectors, tokenCount } = await embedder.embed(input, {
        truncate,
        field: inputField("input", body),
        signal: active.signalFor(reply),
      });
      return {
        model: asCalled(body, [id]),
        embeddings: vectors.map((vector) => Array.from(shortened(vector, dimensions))),
        total_duration: Math.round((performance.now() - startedAt) * 1e6),
        load_duration: 0,
        prompt_eval_count: tokenCount,
      };
    },
  };
}

/** Clients that are older than /api/embed ask here. */
function oneEmbeddingRoute(context: RouteContext): RouteOptions {
  const { active, warnings } = context;
  return {
    method: "POST",
    url: "/api/embeddings",
    config: { wire: "ollama" },
    handler: async ({ body }, reply) => {
      const embedder = embedderOf(context);
      const reading = { warn: warnings.warn };
      const given = readBody(oneEmbeddingFields, body, reading, 'Send {"prompt": "…"}');
      const input = given.prompt === "" ? [] : [given.prompt];
      const signal = active.signalFor(reply);
      const field = inputField("prompt", body);
      const { vectors } = await embedder.embed(input, { truncate: true, field, signal });
      return { embedding: vectors.flatMap((vector) => Array.from(vector)) };
    },
  };
}
