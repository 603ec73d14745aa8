/** From options and a file to the addon's engine. */

import { FermataError } from "../errors.ts";
import { addonPath, loadAddon } from "../native/addon.ts";
import type { NativeBatch, NativeEngine } from "../native/addon-types.ts";
import { checkGguf } from "./gguf-check.ts";
import { fromThrown } from "./native-errors.ts";
import { loadFacts, resolveOptions } from "./options.ts";
import { probeModel } from "./probe.ts";
import type { EngineOptions } from "./types.ts";

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
): Promise<NativeEngine> {
  const resolved = resolveOptions(options, loadFacts(checkGguf(options.modelPath)));
  const addon = loadAddon();
  await probeModel(options.modelPath, { addonPath: addonPath(), signal });
  if (signal?.aborted) throw cancelled();
  try {
    const load = addon.load(resolved, onBatch, onProgress);
    signal?.addEventListener("abort", load.cancel);
    try {
      return await load.engine;
    } finally {
      signal?.removeEventListener("abort", load.cancel);
    }
  } catch (thrown) {
    const error = fromThrown(thrown);
    if (error.code === "engine_closed") throw cancelled();
    if (error.code !== "invalid_value") throw error;
    throw new FermataError("invalid_option", error.message, { cause: thrown });
  }
}

function cancelled(): FermataError {
  return new FermataError("cancelled", "Loading was cancelled.");
}
