/** POST /v1/embeddings */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { shortened } from "../answer/embedding.ts";
import { readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { embeddingFields, type EmbeddingValues } from "./fields.ts";

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

interface EmbeddingList {
  object: "list";
  data: { object: "embedding"; index: number; embedding: number[] | string }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

export function embeddingList(
  model: string,
  { vectors, tokenCount }: { vectors: readonly Float32Array[]; tokenCount: number },
  {
    dimensions = Infinity,
    encoding_format: encoding,
  }: Pick<EmbeddingValues, "dimensions" | "encoding_format">,
): EmbeddingList {
  return {
    object: "list",
    data: vectors.map((vector, index) => {
      const short = shortened(vector, dimensions);
      const embedding = encoding === "base64" ? base64(short) : Array.from(short);
      return { object: "embedding", index, embedding };
    }),
    model,
    usage: { prompt_tokens: tokenCount, total_tokens: tokenCount },
  };
}

/** Little-endian floats of 32 bits. */
function base64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString("base64");
}
