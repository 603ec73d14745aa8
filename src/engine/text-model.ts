/** A model beside the engine's that reads whole texts, for their vectors or their scores. */

import { FermataError } from "../errors.ts";
import { addonPath, loadAddon } from "../native/addon.ts";
import type { NativeEmbedder, NativeEmbedderOptions } from "../native/addon-types.ts";
import { Turns } from "../turns.ts";
import type { CheckedModel } from "./gguf-check.ts";
import { fromThrown } from "./native-errors.ts";
import { physicalCores } from "./options.ts";
import { probeEmbedder } from "./probe.ts";

export interface TextModelOptions {
  modelPath: string;
  /** Default: number of physical cores. */
  threads?: number | undefined;
  gpuLayers?: number | undefined;
}

/** Tokens of a text whose model does not say how many it was trained for. */
const defaultLength = 512;

/** Requests that may wait. */
const maxWaiting = 64;

/** It works on one text at a time, of each request in turn. */
export abstract class TextModel {
  protected readonly native: NativeEmbedder;
  readonly #turns = new Turns();
  #waiting = 0;

  /** For a model of the addon. Use `load`. */
  constructor(native: NativeEmbedder) {
    this.native = native;
  }

  /** One piece of a request's work; other requests have their turns between two pieces. */
  protected turn<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(work);
  }

  /** @param what is asked for @throws FermataError queue_full | the signal's reason | what `work` does */
  protected async request<Result>(
    what: string,
    signal: AbortSignal | undefined,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#waiting >= maxWaiting)
      throw new FermataError("queue_full", `Too many requests for ${what} are waiting.`);
    this.#waiting += 1;
    try {
      return await work();
    } catch (thrown) {
      signal?.throwIfAborted();
      throw fromThrown(thrown);
    } finally {
      this.#waiting -= 1;
    }
  }
}

/**
 * Tried in a child process first.
 * @param checked what `checkGguf` found in the file @param longest tokens of a text: its memory grows with them
 * @throws FermataError model_invalid (it gives no such vectors, too) | out_of_memory | no_threads | addon_missing
 */
export async function loadTextModel(
  { modelPath, threads = physicalCores(), gpuLayers = 0 }: TextModelOptions,
  { parts, trainedContext = defaultLength, positions = Infinity }: CheckedModel,
  longest: number,
  kind: Pick<NativeEmbedderOptions, "pooling" | "ranks">,
): Promise<NativeEmbedder> {
  const maxTokens = Math.min(trainedContext, positions, longest);
  const options = { modelPath, maxTokens, threads, gpuLayers, ...kind };
  const addon = loadAddon();
  try {
    await probeEmbedder(parts, options, { addonPath: addonPath() });
    return await addon.loadEmbedder(options);
  } catch (thrown) {
    const error = fromThrown(thrown);
    if (error.code !== "invalid_value" && error.code !== "model_invalid") throw error;
    // llama.cpp names only sizes that it knows; the rest it calls `?B`.
    const message = error.message.replace(" ?B", "");
    throw new FermataError("model_invalid", message, { cause: thrown });
  }
}

/**
 * The first tokens of a text, and those that the model wants at its end; the whole text where it is short enough.
 * @param frame the tokens that it wants around a text, which are those of an empty one
 */
export function shortened(tokens: Int32Array, frame: Int32Array, length: number): Int32Array {
  if (tokens.length <= length) return tokens;
  let before = 0;
  while (before < frame.length && tokens[before] === frame[before]) before += 1;
  let behind = 0;
  while (behind < frame.length - before && tokens.at(-1 - behind) === frame.at(-1 - behind))
    behind += 1;
  const cut = tokens.slice(0, Math.max(length, before + behind));
  cut.set(tokens.subarray(tokens.length - behind), cut.length - behind);
  return cut;
}
