/** Whether a model fits, as llama.cpp counts it: no weight is read. */

import { totalOf } from "../../engine/fit.ts";
import { checkGguf } from "../../engine/gguf-check.ts";
import { fitModel } from "../../engine/load.ts";
import type { NativeLoadOptions, NativeMemoryNeeds } from "../../native/addon-types.ts";
import { engineOptionsOf, withFlags } from "../engine-config.ts";
import type { ServeConfig } from "../options.ts";

export interface ModelFit {
  path: string;
  architecture: string;
  trainedContext: number | null;
  layers: number;
  weightBytes: number;
  cacheBytes: number;
  /** Of those, what a conversation takes that fills its context. */
  conversationBytes: number;
  computeBytes: number;
  /** Of those, what must be in the machine's own memory. */
  neededBytes: number;
  devices: NativeMemoryNeeds["devices"];
  /** As the engine would have them. */
  resolved: NativeLoadOptions;
}

/** @throws FermataError, as loading it would */
export async function measureFit(path: string, config: ServeConfig): Promise<ModelFit> {
  const { architecture, trainedContext, layers } = checkGguf(path);
  const { resolved, needs } = await fitModel(engineOptionsOf(config, path)).catch(
    (error: unknown) => {
      throw withFlags(error);
    },
  );
  const sum = (part: "weights" | "cache" | "compute"): number =>
    [needs.host, ...needs.devices].reduce((total, parts) => total + parts[part], 0);
  return {
    path,
    architecture,
    trainedContext: trainedContext ?? null,
    layers,
    weightBytes: sum("weights"),
    cacheBytes: sum("cache"),
    conversationBytes: sum("cache") / (resolved.parallel + resolved.retainedSlots),
    computeBytes: sum("compute"),
    neededBytes: totalOf(needs.host),
    devices: needs.devices,
    resolved,
  };
}
