/** POST /v1/embeddings */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { embeddingList } from "./embedding.ts";
import { embeddingFields } from "./fields.ts";

export function embeddingsRoute({ services, active, warnings }: RouteContext): RouteOptions {
  const { embedder } = services;
  return {
    method: "POST",
    url: "/v1/embeddings",
    handler: async ({ body }, reply) => {
      if (embedder === undefined) {
        throw new FermataError(
          "unsupported_value",
          `"model" gives no embeddings: ${services.model.id} generates text. Start the server with --embedding-model FILE.`,
          { param: "model" },
        );
      }
      const { id, dimensions, vocabularySize } = embedder;
      const reading = { warn: warnings.warn, vocabularySize };
      const request = readBody(embeddingFields(dimensions), body, reading, 'Send {"input": "…"}');
      if (request.model !== undefined && request.model !== id)
        warnings.warn(
          `model=${request.model}`,
          `names an embedding model that is not loaded; ${id} answers`,
        );
      const embeddings = await embedder.embed(request.input, active.signalFor(reply));
      return embeddingList(id, embeddings, request);
    },
  };
}
