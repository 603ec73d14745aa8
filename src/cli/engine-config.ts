/** From the options of `fermata serve` to those of its engines. */

import type { EngineOptions } from "../engine/types.ts";
import { userFolder } from "./folders.ts";
import { llamaOptionsOf } from "./llama-options.ts";
import type { ServeConfig } from "./options.ts";
import { join } from "node:path";

/** As much as an engine takes by itself (engine/fit.ts), divided by those that may be in memory. */
const ramShare = 1 / 4;
const mostRamMib = 8192;

/** Of several models: none may take what the next ones need. Undefined: one model, whose engine decides. */
function shareOfRam({ modelsDir, modelsMax }: ServeConfig): number | undefined {
  if (modelsDir === undefined) return undefined;
  const free = process.availableMemory() / 2 ** 20;
  return Math.floor(Math.min(mostRamMib, free * ramShare) / modelsMax);
}

/** @throws FermataError invalid_option */
export function engineOptionsOf(config: ServeConfig, modelPath: string): EngineOptions {
  return {
    modelPath,
    contextSize: config.ctxSize,
    parallel: config.parallel,
    retainedSlots: config.retainedSlots,
    cacheRam: config.cacheRam ?? shareOfRam(config),
    cacheDisk: config.cacheDisk,
    cacheDir: config.cacheDir ?? join(userFolder("cache"), "contexts"),
    threads: config.threads,
    gpuLayers: config.nGpuLayers,
    llama: llamaOptionsOf(config),
    kvLayout: config.kvLayout,
    deterministic: config.deterministic,
    drafts: config.drafts,
    stepTokenBudget: config.batchSize,
    microBatch: config.ubatchSize,
    targetItlMs: config.targetItlMs,
    flashAttention: config.flashAttn,
    cacheTypeK: config.cacheTypeK,
    cacheTypeV: config.cacheTypeV,
    retainBetweenRequests: config.contextCache,
    ownersShareCache: config.shareCache,
    audit: config.audit,
  };
}
