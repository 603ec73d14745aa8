/** Whether a model fits, from its header alone: no weight is read. */

import { checkGguf } from "../../engine/gguf-check.ts";
import { cellBytes } from "../../engine/model-shape.ts";
import { loadFacts, resolveOptions } from "../../engine/options.ts";
import type { NativeLoadOptions } from "../../native/addon-types.ts";
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
  const checked = checkGguf(path);
  const { architecture, trainedContext, shape, weightBytes } = checked;
  const { ctxSize, parallel, retainedSlots, cacheRam, threads, nGpuLayers, kvLayout } = config;
  const { flashAttn, cacheTypeK, cacheTypeV, cacheDisk, cacheDir = "" } = config;
  const resolved = resolveOptions(
    {
      modelPath: path,
      contextSize: ctxSize,
      parallel,
      retainedSlots,
      cacheRam,
      cacheDisk,
      cacheDir,
      threads,
      gpuLayers: nGpuLayers,
      kvLayout,
      flashAttention: flashAttn,
      cacheTypeK,
      cacheTypeV,
    },
    loadFacts(checked),
  );
  const cell = cellBytes(shape, resolved.cacheTypeK, resolved.cacheTypeV);
  const cacheBytes = cell * resolved.cellsTotal;

  // As native/llama/context_memory.cpp estimates it before it loads.
  const { layers, width, heads, feedForward, vocabulary } = shape;
  const rows = resolved.microBatch;
  const span = resolved.kvLayout === "streams" ? resolved.contextSize : resolved.cellsTotal;
  const activations = rows * (8 * width + 3 * feedForward) * 4;
  const scores = resolved.flashAttention !== "off" ? 0 : rows * span * heads * 4;
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
