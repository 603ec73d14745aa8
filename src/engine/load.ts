/** From options and a file to the addon's engine. */

import { FermataError, invalidOption } from "../errors.ts";
import { addonPath, loadAddon } from "../native/addon.ts";
import type { NativeAddon, NativeBatch, NativeEngine } from "../native/addon-types.ts";
import { checkGguf, type CheckedModel } from "./gguf-check.ts";
import { fromThrown } from "./native-errors.ts";
import { assertFits, type Fit, fitOptions, type Machine } from "./fit.ts";
import { cellBlock, resolveOptions } from "./options.ts";
import { probeModel } from "./probe.ts";
import type { EngineOptions } from "./types.ts";

/** Seconds. */
const usualRpcTimeout = 600;

export interface LoadHooks {
  /** Called with 0 .. 1 while the weights load. */
  onProgress?: ((fraction: number) => void) | undefined;
  /** Gives the load up: it rejects with `cancelled` when everything is freed. */
  signal?: AbortSignal | undefined;
}

/** Checks options and file, then loads. @throws FermataError, see `Engine.load` */
export async function loadNative(
  options: EngineOptions,
  { onProgress, signal }: LoadHooks,
  onBatch: (batch: NativeBatch) => void,
): Promise<{ native: NativeEngine; fit: Fit }> {
  const fit = await fitModel(options, signal);
  assertFits(fit, process.availableMemory());
  if (signal?.aborted) throw cancelled();
  try {
    const load = loadAddon().load(fit.resolved, onBatch, onProgress);
    signal?.addEventListener("abort", load.cancel);
    try {
      return { native: await load.engine, fit };
    } finally {
      signal?.removeEventListener("abort", load.cancel);
    }
  } catch (thrown) {
    const error = fromThrown(thrown);
    if (error.code === "engine_closed") throw cancelled();
    throw asOption(error);
  }
}

/** What would be loaded, without loading it. @throws FermataError, as loading it would */
export async function fitModel(options: EngineOptions, signal?: AbortSignal): Promise<Fit> {
  if (typeof options.modelPath !== "string" || options.modelPath === "")
    throw invalidOption("modelPath must be the path of a GGUF file.", "modelPath");
  const checked = checkGguf(options.modelPath);
  if (checked.readsOnly) throw readsOnly(options.modelPath, checked.ranks);
  const draft = checkDraftModel(options);
  const addon = loadAddon();
  // A mistake in the options is said before the file is probed.
  const { trainedContext, positions } = checked;
  if (positions !== undefined && positions < cellBlock)
    throw new FermataError(
      "model_invalid",
      `${options.modelPath} has weights for ${positions} positions; ${cellBlock} are the least that llama.cpp runs.`,
    );
  resolveOptions(options, { trainedContext, positions, physicalCores: 1 });
  const mtpLayers = options.draftMtp === true;
  if (mtpLayers && checked.mtpLayers === 0)
    throw invalidOption(
      `draftMtp is for models with MTP layers, and ${options.modelPath} has none (nextn_predict_layers). Leave it out.`,
      "draftMtp",
    );
  await probeModel(checked.parts, { addonPath: addonPath(), signal, mtpLayers });
  if (draft !== undefined) await probeModel(draft.parts, { addonPath: addonPath(), signal });
  await addRpcServers(addon, options);
  const availableBytes = process.availableMemory();
  const measure: Machine["measure"] = (resolved, sizes) => addon.measure(resolved, sizes);
  const machine = { measure, devices: () => addon.devices(), availableBytes };
  return await fitOptions(options, checked, machine, draft);
}

/** @throws FermataError model_not_found | model_invalid | invalid_option */
function checkDraftModel({ draftModel }: EngineOptions): CheckedModel | undefined {
  if (draftModel === undefined) return undefined;
  const checked = checkGguf(draftModel);
  if (checked.readsOnly)
    throw invalidOption(`draftModel: ${draftModel} generates no text.`, "draftModel");
  return checked;
}

function readsOnly(path: string, ranks: boolean): FermataError {
  const [what, option] = ranks ? ["ranks", "--rerank-model"] : ["embeds", "--embedding-model"];
  return new FermataError(
    "model_invalid",
    `${path} ${what} texts and generates none. Give it as ${option}, beside a model that generates.`,
  );
}

/** @throws FermataError rpc_server_unreachable | invalid_option */
async function addRpcServers(addon: NativeAddon, { llama }: EngineOptions): Promise<void> {
  for (const endpoint of llama?.rpcServers ?? [])
    try {
      await addon.addRpcServer(endpoint, llama?.rpcTimeout ?? usualRpcTimeout);
    } catch (thrown) {
      throw asOption(fromThrown(thrown));
    }
}

function asOption(error: FermataError): FermataError {
  if (error.code !== "invalid_value") return error;
  return new FermataError("invalid_option", error.message, { cause: error.cause });
}

function cancelled(): FermataError {
  return new FermataError("cancelled", "Loading was cancelled.");
}
