/** Whether a model fits, from its header alone: no weight is read. */

import { closeSync, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { checkGguf } from "../../engine/gguf-check.ts";
import { GgufCursor } from "../../engine/gguf-cursor.ts";
import { type GgufHeader, readGgufHeader } from "../../engine/gguf-header.ts";
import { resolveOptions } from "../../engine/options.ts";
import { physicalCores } from "../../engine/physical-cores.ts";
import type { NativeLoadOptions } from "../../native/addon-types.ts";
import { groupModelFiles } from "../model-files.ts";
import type { ServeConfig } from "../options.ts";

export interface ModelFit {
  path: string;
  architecture: string;
  trainedContext: number | null;
  /** Of all parts. */
  weightBytes: number;
  cacheBytes: number;
  computeBytes: number;
  /** Of those, what must be in the machine's own memory. */
  neededBytes: number;
  /** As the engine would have them. */
  resolved: NativeLoadOptions;
}

/** @throws FermataError, as loading it would */
export function estimateFit(path: string, config: ServeConfig): ModelFit {
  const { architecture, trainedContext } = checkGguf(path);
  const facts = { trainedContext, physicalCores: physicalCores() };
  const { ctxSize, parallel, retainedSlots, threads, nGpuLayers, kvLayout } = config;
  const { flashAttn, cacheTypeK, cacheTypeV } = config;
  const resolved = resolveOptions(
    {
      modelPath: path,
      contextSize: ctxSize,
      parallel,
      retainedSlots,
      threads,
      gpuLayers: nGpuLayers,
      kvLayout,
      flashAttention: flashAttn,
      cacheTypeK,
      cacheTypeV,
    },
    facts,
  );
  const weightBytes = sizeOfParts(path);
  const { metadata } = readHeader(path);
  const number = (name: string, otherwise: number): number => {
    const value = metadata.get(`${architecture}.${name}`);
    return typeof value === "number" ? value : otherwise;
  };
  const layers = number("block_count", 0);
  const heads = number("attention.head_count", 1);
  const kvHeads = number("attention.head_count_kv", heads);
  const width = number("embedding_length", 0);
  const keyLength = number("attention.key_length", width / heads);
  const valueLength = number("attention.value_length", width / heads);
  const cell =
    rowBytes(resolved.cacheTypeK, kvHeads * keyLength) +
    rowBytes(resolved.cacheTypeV, kvHeads * valueLength);
  const cacheBytes = cell * layers * resolved.cellsTotal;

  // As native/llama/context_memory.cpp estimates it before it loads.
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const vocabulary = typeof tokens === "object" ? tokens.length : 0;
  const rows = resolved.microBatch;
  const span = resolved.kvLayout === "streams" ? resolved.contextSize : resolved.cellsTotal;
  const activations = rows * (8 * width + 3 * number("feed_forward_length", 4 * width)) * 4;
  const scores = resolved.flashAttention ? 0 : rows * span * heads * 4;
  const computeBytes =
    2 * resolved.parallel * vocabulary * 4 + activations + rows * span * 4 + scores;
  const onHost =
    resolved.gpuLayers < 0 ? 0 : Math.max(layers - resolved.gpuLayers, 0) / Math.max(layers, 1);
  return {
    path,
    architecture,
    trainedContext: trainedContext ?? null,
    weightBytes,
    cacheBytes,
    computeBytes,
    neededBytes: Math.round((weightBytes + cacheBytes) * onHost + computeBytes),
    resolved,
  };
}

/** Of a row of so many values; quantized types hold blocks of 32. */
function rowBytes(type: NativeLoadOptions["cacheTypeK"], values: number): number {
  const blocks = Math.floor(values / 32);
  return {
    f32: values * 4,
    f16: values * 2,
    bf16: values * 2,
    q8_0: blocks * 34,
    q4_0: blocks * 18,
  }[type];
}

function sizeOfParts(path: string): number {
  const folder = dirname(path);
  const group = groupModelFiles(readdirSync(folder)).find(({ first }) => first === basename(path));
  const names = group?.paths ?? [basename(path)];
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function readHeader(path: string): GgufHeader {
  const descriptor = openSync(path, "r");
  try {
    return readGgufHeader(new GgufCursor(path, descriptor, fstatSync(descriptor).size));
  } finally {
    closeSync(descriptor);
  }
}
