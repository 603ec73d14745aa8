/** POST /v1/embeddings and POST /embedding */

import type { Route } from "../route.ts";
import { embedderOf, inputField, shortened, warnOfName } from "../answer/model-use.ts";
import { fieldError, readBody } from "../body/field.ts";
import { answer, choice, list, oneOf, real, string, type ValueOf, whole } from "../body/shapes.ts";
import type { RouteContext } from "../context.ts";
import { embeddingFields, type EmbeddingValues, nativeEmbeddingFields } from "./fields.ts";

export function embeddingsRoute(context: RouteContext): Route {
  return {
    at: "POST /v1/embeddings",
    summary: "Vectors of texts, if an embedding model is loaded.",
    request: embeddingFields(),
    answer: embeddings,
    handler: async ({ body }, reply) => {
      const embedder = embedderOf(context);
      const { id, dimensions, vocabularySize } = embedder;
      const reading = { warn: context.warnings.warn, vocabularySize };
      const request = readBody(embeddingFields(dimensions), body, reading, 'Send {"input": "…"}');
      warnOfName(request.model, embedder, "embed", context);
      const { truncate_prompt_tokens: most } = request;
      const computed = await embedder.embed(request.input, {
        textTokens: most === -1 ? embedder.maxTokens : most,
        field: inputField("input", body),
        signal: context.active.signalFor(reply),
      });
      return embeddingList(id, computed, request);
    },
  };
}

/** llama-server's: vectors alone, each in a list of its own. */
export function nativeEmbeddingRoute(context: RouteContext): Route {
  return {
    at: "POST /embedding",
    summary: "Vectors of texts in llama-server's format, if an embedding model is loaded.",
    request: nativeEmbeddingFields,
    /** Each vector is a list in a list: llama-server has one for each token where nothing is pooled. */
    answer: list(answer({ index: whole, embedding: list(list(real)) })),
    handler: async ({ body }, reply) => {
      const embedder = embedderOf(context);
      const { vocabularySize } = embedder;
      const reading = { warn: context.warnings.warn, vocabularySize };
      const example = 'Send {"content": "…"}';
      const { content, input, model } = readBody(nativeEmbeddingFields, body, reading, example);
      const inputs = content ?? input;
      if (inputs === undefined) throw fieldError("missing_field", "content", "is missing", example);
      warnOfName(model, embedder, "embed", context);
      const { vectors } = await embedder.embed(inputs, {
        field: inputField(content === undefined ? "input" : "content", body),
        signal: context.active.signalFor(reply),
      });
      return vectors.map((vector, index) => ({ index, embedding: [Array.from(vector)] }));
    },
  };
}

export const embeddings = answer({
  object: choice("list"),
  data: list(
    answer({
      object: choice("embedding"),
      index: whole,
      // Base64 of little-endian floats if that was asked for.
      embedding: oneOf(list(real), string),
    }),
  ),
  model: string,
  usage: answer({ prompt_tokens: whole, total_tokens: whole }),
});

export function embeddingList(
  model: string,
  { vectors, tokenCount }: { vectors: readonly Float32Array[]; tokenCount: number },
  {
    dimensions = Infinity,
    encoding_format: encoding,
  }: Pick<EmbeddingValues, "dimensions" | "encoding_format">,
): ValueOf<typeof embeddings> {
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
