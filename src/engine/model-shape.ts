/** What decides the memory that a model's cache takes, from its header. */

import type { GgufValue } from "./gguf-header.ts";
import type { KvCacheType } from "./types.ts";

export interface ModelShape {
  layers: number;
  heads: number;
  keyValueHeads: number;
  /** Values of one key, and of one value. */
  keyLength: number;
  valueLength: number;
  width: number;
  feedForward: number;
  vocabulary: number;
}

export function modelShape(
  metadata: ReadonlyMap<string, GgufValue>,
  architecture: string,
): ModelShape {
  const number = (name: string, otherwise: number): number => {
    const value = metadata.get(`${architecture}.${name}`);
    return typeof value === "number" ? value : otherwise;
  };
  const heads = number("attention.head_count", 1);
  const width = number("embedding_length", 0);
  // Recurrent models have no heads, and no cells.
  const headLength = heads === 0 ? 0 : width / heads;
  const tokens = metadata.get("tokenizer.ggml.tokens");
  return {
    layers: number("block_count", 0),
    heads,
    keyValueHeads: number("attention.head_count_kv", heads),
    keyLength: number("attention.key_length", headLength),
    valueLength: number("attention.value_length", headLength),
    width,
    feedForward: number("feed_forward_length", 4 * width),
    vocabulary: typeof tokens === "object" ? tokens.length : 0,
  };
}

/** Of one token in the caches of all layers. */
export function cellBytes(shape: ModelShape, keys: KvCacheType, values: KvCacheType): number {
  const { layers, keyValueHeads, keyLength, valueLength } = shape;
  const row =
    rowBytes(keys, keyValueHeads * keyLength) + rowBytes(values, keyValueHeads * valueLength);
  return row * layers;
}

/** Of a row of so many values; quantized types hold blocks of 32. */
function rowBytes(type: KvCacheType, values: number): number {
  const blocks = Math.floor(values / 32);
  return {
    f32: values * 4,
    f16: values * 2,
    bf16: values * 2,
    q8_0: blocks * 34,
    q4_0: blocks * 18,
  }[type];
}
