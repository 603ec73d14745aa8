/** POST /api/embed and /api/embeddings, as Ollama has them. */

import type { Route } from "../route.ts";
import { answer, list, real, string, whole } from "../body/shapes.ts";
import { embedderOf, inputField, shortened } from "../answer/model-use.ts";
import { asCalled } from "../answer/target.ts";
import { readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { embedFields, oneEmbeddingFields } from "./fields.ts";

export function embedRoutes(context: RouteContext): Route[] {
  return [embedRoute(context), oneEmbeddingRoute(context)];
}

function embedRoute(context: RouteContext): Route {
  const { active, warnings } = context;
  return {
    at: "POST /api/embed",
    summary: "Vectors of texts in Ollama's format, if an embedding model is loaded.",
    request: embedFields(),
    answer: answer({
      model: string,
      embeddings: list(list(real)),
      total_duration: whole,
      load_duration: whole,
      prompt_eval_count: whole,
    }),
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
function oneEmbeddingRoute(context: RouteContext): Route {
  const { active, warnings } = context;
  return {
    at: "POST /api/embeddings",
    summary: "The vector of one text, for Ollama's clients that are older than /api/embed.",
    request: oneEmbeddingFields,
    answer: answer({ embedding: list(real) }),
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
