/** A model for vectors or scores, from its file: tried in a child process first. */

import { FermataError } from "../errors.ts";
import { addonPath, loadAddon } from "../native/addon.ts";
import type { NativeEmbedder, NativeEmbedderOptions } from "../native/addon-types.ts";
import { fromThrown } from "./native-errors.ts";
import { probeEmbedder } from "./probe.ts";

/**
 * `modelPath` is of a file that `checkGguf` found sound.
 * @throws FermataError model_invalid (it gives no such vectors, too) | out_of_memory | addon_missing
 */
export async function loadNativeEmbedder(options: NativeEmbedderOptions): Promise<NativeEmbedder> {
  const addon = loadAddon();
  try {
    await probeEmbedder(options, { addonPath: addonPath() });
    return await addon.loadEmbedder(options);
  } catch (thrown) {
    const error = fromThrown(thrown);
    if (error.code !== "invalid_value" && error.code !== "model_invalid") throw error;
    // llama.cpp names only sizes that it knows; the rest it calls `?B`.
    const message = error.message.replace(" ?B", "");
    throw new FermataError("model_invalid", message, { cause: thrown });
  }
}
