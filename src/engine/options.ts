import { FermataError } from "../errors.ts";
import type { NativeLoadOptions } from "../native/addon-types.ts";
import type { EngineOptions, KvCacheType } from "./types.ts";

/** What the defaults depend on. */
export interface LoadFacts {
  /** Undefined when the model does not say. */
  trainedContext: number | undefined;
  physicalCores: number;
}

const largestDefaultContext = 8192;
// llama.cpp's LLAMA_MAX_SEQ.
const maximumSlots = 256;
const maximumInt32 = 2 ** 31 - 1;

/**
 * Fills in the defaults for this model and machine, and checks what the user gave.
 * @throws FermataError invalid_option, its `param` naming the option
 */
export function resolveOptions(options: EngineOptions, facts: LoadFacts): NativeLoadOptions {
  const contextSize = integer(
    "contextSize",
    options.contextSize ??
      Math.min(facts.trainedContext ?? largestDefaultContext, largestDefaultContext),
    32,
    2 ** 24,
  );
  const parallel = integer("parallel", options.parallel ?? 4, 1, maximumSlots);
  const retainedSlots = integer(
    "retainedSlots",
    options.retainedSlots ?? parallel,
    0,
    maximumSlots,
  );
  if (parallel + retainedSlots > maximumSlots) {
    throw invalidOption(
      "parallel",
      `parallel and retainedSlots may not exceed ${maximumSlots} together.`,
    );
  }
  // -1: all layers.
  const gpuLayers = integer("gpuLayers", options.gpuLayers ?? 0, -1, 10_000);
  const onGpu = gpuLayers !== 0;
  const kvLayout = resolveLayout(options.kvLayout ?? "auto", onGpu);
  // Streams have the cells of their slots; a pool is as large as what may run at once needs.
  const cellsTotal = contextSize * (kvLayout === "streams" ? parallel + retainedSlots : parallel);
  if (cellsTotal > maximumInt32) {
    throw invalidOption("contextSize", `The cache would have ${cellsTotal} cells, 2^31 or more.`);
  }
  const cacheTypeV = options.cacheTypeV ?? "f16";
  const stepTokenBudget = integer(
    "stepTokenBudget",
    options.stepTokenBudget ?? 512,
    parallel,
    16_384,
  );
  return {
    modelPath: options.modelPath,
    contextSize,
    parallel,
    retainedSlots,
    cellsTotal,
    threads: integer("threads", options.threads ?? facts.physicalCores, 1, 512),
    gpuLayers,
    kvLayout,
    flashAttention: resolveFlashAttention(options.flashAttention ?? "auto", onGpu, cacheTypeV),
    cacheTypeK: options.cacheTypeK ?? "f16",
    cacheTypeV,
    stepTokenBudget,
    microBatch: Math.min(stepTokenBudget, 512),
    holdLeaseMs: integer("holdLeaseMs", options.holdLeaseMs ?? 600_000, 1, maximumInt32),
    maxQueue: integer("maxQueue", options.maxQueue ?? 256, 0, 65_536),
    audit: options.audit ?? false,
  };
}

/** A CPU reads each sequence's own cells only in streams; a GPU shares cells for nothing in a pool. */
function resolveLayout(
  layout: "streams" | "unified" | "auto",
  onGpu: boolean,
): "streams" | "unified" {
  if (layout !== "auto") return layout;
  return onGpu ? "unified" : "streams";
}

/** On a CPU decoding at depth is faster without it, but quantized values need it. */
function resolveFlashAttention(
  choice: "on" | "off" | "auto",
  onGpu: boolean,
  cacheTypeV: KvCacheType,
): boolean {
  const needed = cacheTypeV === "q8_0" || cacheTypeV === "q4_0";
  if (choice === "auto") return onGpu || needed;
  if (choice === "off" && needed) {
    throw invalidOption(
      "cacheTypeV",
      `A cache of ${cacheTypeV} values needs flash attention: turn it on, or store values as f16.`,
    );
  }
  return choice === "on";
}

function integer(
  name: keyof EngineOptions,
  value: number,
  lowest: number,
  highest: number,
): number {
  if (!Number.isInteger(value) || value < lowest || value > highest) {
    throw invalidOption(
      name,
      `${name} must be a whole number from ${lowest} to ${highest}, not ${value}.`,
    );
  }
  return value;
}

function invalidOption(name: keyof EngineOptions, message: string): FermataError {
  return new FermataError("invalid_option", message, { param: name });
}
