/** POST /v1/embeddings */

import type { RouteOptions } from "fastify";
import type { RouteContext } from "../context.ts";
import { FermataError } from "../../errors.ts";
import { embeddingList } from "./embedding.ts";
import { parseEmbeddingRequest } from "./request.ts";

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
      const request = parseEmbeddingRequest(body, embedder, warnings.warn);
      if (request.model !== null && request.model !== embedder.id)
        warnings.warn(
          `model=${request.model}`,
          `names an embedding model that is not loaded; ${embedder.id} answers`,
        );
      const embeddings = await embedder.embed(request.inputs, active.signalFor(reply));
      return embeddingList(embedder.id, embeddings, request);
    },
  };
}
