/** The engine's options: defaults for this model and machine, and ranges. */

import { FermataError } from "../errors.ts";
import type { NativeLoadOptions } from "../native/addon-types.ts";
import type { CheckedModel } from "./gguf-check.ts";
import { type ModelShape, cellBytes } from "./model-shape.ts";
import type { EngineOptions, KvCacheType } from "./types.ts";
import { readFileSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, resolve } from "node:path";

/** The model and machine that the defaults depend on. */
export interface LoadFacts {
  /** Undefined when the model does not say. */
  trainedContext: number | undefined;
  physicalCores: number;
  /** Undefined: unknown. */
  memory?: {
    /** Free memory without swapping. */
    availableBytes: number;
    weightBytes: number;
    shape: ModelShape;
  };
}

/** Defaults for this model and machine. */
export function loadFacts({ trainedContext, shape, weightBytes }: CheckedModel): LoadFacts {
  const memory = { availableBytes: process.availableMemory(), weightBytes, shape };
  return { trainedContext, physicalCores: physicalCores(), memory };
}

/** Host memory for sequences without a slot: a share of what weights and slots leave, and a maximum. */
/** Requests that may wait. */
export const defaultMaxQueue = 256;

const ramShare = 1 / 4;
const mostRamMib = 8192;
const mib = 2 ** 20;
/** Room for agents' tools and results, where the memory has it. */
const usualContext = 8192;
/** Too little context for agents below this. */
const leastContext = 2048;
/** Share of the memory that the weights leave: the cache's limit for a context above the usual one. */
const cacheShare = 1 / 4;
// llama.cpp's LLAMA_MAX_SEQ.
const maximumSlots = 256;
/** Longer drafts are seldom right to their end, and logits of many rows take memory. */
const mostDrafted = 15;
const maximumInt32 = 2 ** 31 - 1;

/**
 * Fills in the defaults for this model and machine, and checks what the user gave.
 * @throws FermataError invalid_option, its `param` naming the option
 */
export function resolveOptions(options: EngineOptions, facts: LoadFacts): NativeLoadOptions {
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
  const deterministic = options.deterministic ?? false;
  const kvLayout = resolveLayout(options.kvLayout ?? "auto", onGpu && !deterministic);
  if (deterministic && kvLayout === "unified") {
    throw invalidOption("kvLayout", "A deterministic engine needs the streams layout.");
  }
  const cacheTypeK = options.cacheTypeK ?? "f16";
  const cacheTypeV = options.cacheTypeV ?? "f16";
  // In streams each slot has its own cells; a pool needs cells for the sequences that may run at once.
  const sequences = kvLayout === "streams" ? parallel + retainedSlots : parallel;
  const bytesPerToken =
    facts.memory === undefined
      ? 0
      : cellBytes(facts.memory.shape, cacheTypeK, cacheTypeV) * sequences;
  const contextSize = integer(
    "contextSize",
    options.contextSize ?? defaultContext(facts, onGpu ? 0 : bytesPerToken),
    32,
    2 ** 24,
  );
  const cellsTotal = contextSize * sequences;
  if (cellsTotal > maximumInt32) {
    throw invalidOption("contextSize", `The cache would have ${cellsTotal} cells, 2^31 or more.`);
  }
  const stepTokenBudget = integer(
    "stepTokenBudget",
    options.stepTokenBudget ?? 512,
    parallel,
    16_384,
  );
  const cacheRam = integer(
    "cacheRam",
    options.cacheRam ?? defaultCacheRam(facts, onGpu ? 0 : bytesPerToken * contextSize),
    0,
    2 ** 24,
  );
  const cacheDisk = integer("cacheDisk", options.cacheDisk ?? 0, 0, 2 ** 30);
  if (cacheDisk > 0 && options.cacheDir === undefined)
    throw invalidOption("cacheDir", "cacheDisk needs cacheDir: a folder for the files.");
  return {
    modelPath: options.modelPath,
    contextSize,
    parallel,
    retainedSlots,
    cellsTotal,
    cacheRamBytes: cacheRam * mib,
    cacheDiskBytes: cacheDisk * mib,
    cacheDir:
      options.cacheDir === undefined
        ? ""
        : resolve(options.cacheDir, basename(options.modelPath, ".gguf")),
    threads: integer("threads", options.threads ?? facts.physicalCores, 1, 512),
    adaptThreads: options.threads === undefined,
    gpuLayers,
    kvLayout,
    flashAttention: resolveFlashAttention(options.flashAttention ?? "auto", cacheTypeV),
    cacheTypeK,
    cacheTypeV,
    deterministic,
    draftLimit: (options.drafts ?? false) ? mostDrafted : 0,
    stepTokenBudget,
    targetItlMs: integer("targetItlMs", options.targetItlMs ?? 250, 0, maximumInt32),
    microBatch: Math.min(stepTokenBudget, 512),
    holdLeaseMs: integer("holdLeaseMs", options.holdLeaseMs ?? 600_000, 1, maximumInt32),
    maxQueue: integer("maxQueue", options.maxQueue ?? defaultMaxQueue, 0, 65_536),
    audit: options.audit ?? false,
  };
}

/**
 * The model's trained context, or the largest power of two below it whose cache fits its share of the free memory.
 * @param bytesPerToken of all sequences' caches; 0: unknown
 */
function defaultContext({ trainedContext, memory }: LoadFacts, bytesPerToken: number): number {
  const trained = trainedContext ?? usualContext;
  const usual = Math.min(trained, usualContext);
  if (memory === undefined || bytesPerToken === 0) return usual;
  const free = Math.max(0, memory.availableBytes - memory.weightBytes);
  const fits = (size: number, share: number): boolean => size * bytesPerToken <= free * share;
  let size = usual;
  while (size < trained && fits(Math.min(2 * size, trained), cacheShare))
    size = Math.min(2 * size, trained);
  while (size > leastContext && !fits(size, 1)) size /= 2;
  return Math.floor(size);
}

/** In MiB. @param cacheBytes that the slots take of the same memory */
function defaultCacheRam({ memory }: LoadFacts, cacheBytes: number): number {
  if (memory === undefined) return 0;
  const free = Math.max(0, memory.availableBytes - memory.weightBytes - cacheBytes);
  return Math.min(mostRamMib, Math.floor((free * ramShare) / mib));
}

/** On a CPU, streams read only a sequence's own cells. On a GPU, a pool shares cells at no cost. */
function resolveLayout(
  layout: "streams" | "unified" | "auto",
  onGpu: boolean,
): "streams" | "unified" {
  if (layout !== "auto") return layout;
  return onGpu ? "unified" : "streams";
}

/** Quantized values need it. */
function resolveFlashAttention(
  choice: "on" | "off" | "auto",
  cacheTypeV: KvCacheType,
): "on" | "off" | "auto" {
  if (choice === "off" && (cacheTypeV === "q8_0" || cacheTypeV === "q4_0")) {
    throw invalidOption(
      "cacheTypeV",
      `A cache of ${cacheTypeV} values needs flash attention: leave it on auto, or store values as f16.`,
    );
  }
  return choice;
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

/** Cores that this process may use, two hardware threads counted as one where the system tells. */
export function physicalCores(): number {
  const usable = availableParallelism();
  try {
    const folder = "/sys/devices/system/cpu";
    const names = readdirSync(folder).filter((name) => /^cpu\d+$/.test(name));
    const cores = new Set(
      names.map((name) => readFileSync(`${folder}/${name}/topology/thread_siblings_list`, "utf8")),
    );
    return Math.min(Math.max(cores.size, 1), usable);
  } catch {
    return usable;
  }
}
