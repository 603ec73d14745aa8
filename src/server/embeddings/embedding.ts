/** Vectors as the body of POST /v1/embeddings. */

import type { EmbeddingValues } from "./fields.ts";

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

/** Models that were trained for it say most in their first numbers. */
function shortened(vector: Float32Array, dimensions: number): Float32Array {
  if (dimensions >= vector.length) return vector;
  const head = vector.slice(0, dimensions);
  const length = Math.hypot(...head);
  return length === 0 ? head : head.map((value) => value / length);
}

/** Little-endian floats of 32 bits. */
function base64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString("base64");
}
