/** From the options of `fermata serve` to those of its engines. */

import type { EngineOptions } from "../../engine/types.ts";
import { FermataError, invalidOption } from "../../errors.ts";
import { userFolder } from "../folders.ts";
import { llamaOptionsOf } from "./llama-options.ts";
import { flagOf } from "./option-table.ts";
import { serveOptions, type ServeConfig } from "./serve-options.ts";
import { join } from "node:path";

/** As much as an engine takes by itself (engine/fit.ts), divided by those that may be in memory. */
const ramShare = 1 / 4;
const mostRamMib = 8192;
const remoteMib = 16_384;

/** Of several models: none may take what the next ones need. Undefined: one model, whose engine decides. */
function shareOfRam({ modelsDir, modelsMax }: ServeConfig): number | undefined {
  if (modelsDir === undefined) return undefined;
  const free = process.availableMemory() / 2 ** 20;
  return Math.floor(Math.min(mostRamMib, free * ramShare) / modelsMax);
}

/** Of sequences that memory has no room for. @throws FermataError invalid_option */
function filesOf({
  cacheDisk,
  cacheDir,
  cacheRemote,
}: ServeConfig): Pick<EngineOptions, "cacheDisk" | "cacheDir" | "cacheRemote"> {
  if (cacheRemote === undefined)
    return { cacheDisk, cacheDir: cacheDir ?? join(userFolder("cache"), "contexts") };
  if (cacheDir !== undefined) {
    const message = "--cache-dir and --cache-remote exclude each other. Give one.";
    throw invalidOption(message, "cache-remote");
  }
  return { cacheDisk: cacheDisk || remoteMib, cacheRemote };
}

/** @throws FermataError invalid_option */
export function engineOptionsOf(config: ServeConfig, modelPath: string): EngineOptions {
  return {
    modelPath,
    contextSize: config.ctxSize,
    parallel: config.parallel,
    retainedSlots: config.retainedSlots,
    cacheRam: config.cacheRam ?? shareOfRam(config),
    ...filesOf(config),
    threads: config.threads,
    gpuLayers: config.nGpuLayers,
    llama: { ...llamaOptionsOf(config), rpcTimeout: config.processTimeout.step },
    kvLayout: config.kvLayout,
    deterministic: config.deterministic,
    drafts: config.drafts,
    draftModel: config.draftModel,
    draftMtp: config.draftMtp,
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

/** The engine's names of options that have another one here. */
const ownNames: Readonly<Record<string, string>> = {
  contextSize: "ctxSize",
  gpuLayers: "nGpuLayers",
  stepTokenBudget: "batchSize",
  microBatch: "ubatchSize",
  flashAttention: "flashAttn",
  devices: "device",
};

/** What the engine refused, by the names that were typed. Other errors stay as they are. */
export function withFlags(error: unknown): unknown {
  if (!(error instanceof FermataError) || error.code !== "invalid_option") return error;
  const flag = (name: string): string => {
    const key = ownNames[name] ?? name;
    return Object.hasOwn(serveOptions, key) ? `--${flagOf(key)}` : name;
  };
  // Names of one word stand at the beginning; elsewhere they are words.
  const message = error.message.replaceAll(/^[a-z]\w*|\b[a-z]+[A-Z]\w*/gu, flag);
  const param = error.param === null ? {} : { param: flag(error.param).replace(/^--/u, "") };
  return new FermataError(error.code, message, { ...param, cause: error });
}
