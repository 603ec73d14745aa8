/** What fits: the context, the layers on devices and the memory for sequences, by llama.cpp's own count of bytes. */

import { FermataError, invalidOption } from "../errors.ts";
import type {
  NativeAddon,
  NativeDevice,
  NativeLoadOptions,
  NativeMemoryNeeds,
  NativeMemoryParts,
} from "../native/addon-types.ts";
import type { CheckedModel } from "./gguf-check.ts";
import { fromThrown } from "./native-errors.ts";
import { cellBlock, contextLimit, physicalCores, resolveOptions, usualContext } from "./options.ts";
import type { EngineOptions } from "./types.ts";

/** What a loaded model has on devices. */
export interface DeviceUse {
  /** -1: all. */
  layers: number;
  devices: { name: string; bytes: number }[];
}

export interface Fit {
  resolved: NativeLoadOptions;
  needs: NativeMemoryNeeds;
  devices: NativeDevice[];
}

/** What a fit asks: the addon, or a fake of a machine that is not here. */
export interface Machine extends Pick<NativeAddon, "measure" | "devices"> {
  /** Free memory without swapping. */
  availableBytes: number;
}

/** Too little context for agents below this. */
const leastContext = 2048;
/** Share of the memory that the weights leave: the cache's limit for a context above the usual one. */
const cacheShare = 1 / 4;
/** Host memory for sequences without a slot: a share of what weights and slots leave, and a maximum. */
const ramShare = 1 / 4;
const mib = 2 ** 20;
/** llama.cpp's record of one takes some fifty bytes. */
const mostMeasuredCells = 2 ** 20;
const mostRam = 8192 * mib;
/** What drivers and other programs take of a device beside us. */
const deviceMargin = 512 * mib;

/**
 * Resolves options with what the memory allows. `model` and `draft` were probed: measuring them cannot end the process.
 * @throws FermataError invalid_option | model_invalid
 */
export async function fitOptions(
  options: EngineOptions,
  model: CheckedModel,
  machine: Machine,
  draft?: CheckedModel,
): Promise<Fit> {
  const { trainedContext, positions } = model;
  const draftContext = draft && contextLimit(draft);
  const facts = { trainedContext, positions, draftContext, physicalCores: physicalCores() };
  const trained = contextLimit(facts);
  const devices = usedDevices(machine.devices(), options);
  if (devices.length === 0) assertNoLayers(options);
  const measured = async (gpuLayers: number, sizes: number[]) => {
    const resolved = resolveOptions(
      // Some host memory, where none is given: what a sliding-window model keeps depends on it.
      { ...options, cacheRam: options.cacheRam ?? 1, gpuLayers, contextSize: sizes[0] },
      facts,
    );
    return (await measure(machine, resolved, sizes)).map((needs, at) => ({
      size: sizes[at]!,
      needs,
    }));
  };
  const room = (needs: NativeMemoryNeeds): Room => roomFor(needs, machine.availableBytes, devices);

  const sizes = candidateContexts(options, trained);
  const usual = options.contextSize ?? Math.min(trained ?? usualContext, usualContext);
  const fits = async (layers: number): Promise<boolean> =>
    room((await measured(layers, [usual]))[0]!.needs).fits;
  const gpuLayers =
    devices.length === 0 ? 0 : (options.gpuLayers ?? (await mostLayers(model.layers, fits)));
  const all = await measured(gpuLayers, sizes);
  const chosen =
    all.findLast(({ size, needs }) => {
      const { fits, cacheFraction } = room(needs);
      return fits && (size <= usual || cacheFraction <= cacheShare);
    }) ?? all[0]!;
  const { host } = chosen.needs;
  const left = machine.availableBytes - host.weights - host.cache - host.compute;
  const cacheRam =
    options.cacheRam ?? Math.floor(Math.min(mostRam, Math.max(0, left) * ramShare) / mib);
  const resolved = resolveOptions(
    { ...options, gpuLayers, contextSize: chosen.size, cacheRam },
    facts,
  );
  return { resolved, needs: chosen.needs, devices };
}

/** Nothing but the weights may exceed what is free: a mapped file is read again when it is needed. @throws FermataError out_of_memory */
export function assertFits({ needs }: Fit, availableBytes: number): void {
  const { cache, compute } = needs.host;
  if (cache + compute <= availableBytes) return;
  const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  throw new FermataError(
    "out_of_memory",
    `The cache and buffers need ${gibibytes(cache + compute)} of memory, ${gibibytes(availableBytes)} are available. Lower the context size or the number of slots.`,
  );
}

/** An option that would have no effect. @throws FermataError invalid_option */
function assertNoLayers({ gpuLayers = 0, llama }: EngineOptions): void {
  if (gpuLayers === 0) return;
  const why =
    llama?.devices === undefined
      ? "there is no device; fermata doctor says why"
      : `the devices that were chosen (${llama.devices.join(", ")}) are none`;
  throw invalidOption(
    `gpuLayers asks for ${gpuLayers < 0 ? "all" : gpuLayers} layers on a GPU, and ${why}. Leave it out: then layers are put where there is a device.`,
    "gpuLayers",
  );
}

export function deviceUse({ needs, resolved, devices }: Fit): DeviceUse {
  // Another machine's is described by where it is.
  const nameOf = (name: string): string => {
    const { description } = devices.find((device) => device.name === name) ?? {};
    return name.startsWith("RPC") && description ? `${name} at ${description}` : name;
  };
  const uses = needs.devices.map((parts) => ({ name: nameOf(parts.name), bytes: totalOf(parts) }));
  return { layers: resolved.gpuLayers, devices: uses.filter(({ bytes }) => bytes > 0) };
}

export function totalOf({ weights, cache, compute }: NativeMemoryParts): number {
  return weights + cache + compute;
}

/**
 * Of each size. llama.cpp keeps a record of each cell even of a cache that it only measures, so of large caches
 * two smaller ones are measured: beyond a sliding window, memory grows evenly.
 */
async function measure(
  machine: Machine,
  resolved: NativeLoadOptions,
  sizes: number[],
): Promise<NativeMemoryNeeds[]> {
  const slots = resolved.parallel + resolved.retainedSlots;
  const largest = Math.max(2, Math.floor(mostMeasuredCells / slots / cellBlock)) * cellBlock;
  const small = sizes.filter((size) => size <= largest);
  const ends = small.length < sizes.length ? [largest / 2, largest] : [];
  try {
    const measured = await machine.measure(resolved, [...small, ...ends]);
    const [half, whole] = measured.slice(small.length) as [NativeMemoryNeeds, NativeMemoryNeeds];
    return sizes.map((size) => {
      const at = small.indexOf(size);
      return at < 0 ? beyond(half, whole, size / largest) : measured[at]!;
    });
  } catch (thrown) {
    const error = fromThrown(thrown);
    if (error.code !== "invalid_value") throw error;
    throw new FermataError("invalid_option", error.message, { cause: thrown });
  }
}

/** Of `times` the size of `whole`, which is twice that of `half`. */
function beyond(
  half: NativeMemoryNeeds,
  whole: NativeMemoryNeeds,
  times: number,
): NativeMemoryNeeds {
  const grown = (from: NativeMemoryParts, to: NativeMemoryParts): NativeMemoryParts => {
    const part = (name: keyof NativeMemoryParts): number =>
      to[name] + (to[name] - from[name]) * 2 * (times - 1);
    return { weights: to.weights, cache: part("cache"), compute: part("compute") };
  };
  return {
    host: grown(half.host, whole.host),
    devices: whole.devices.map((device, at) => ({
      name: device.name,
      ...grown(half.devices[at]!, device),
    })),
  };
}

function usedDevices(present: NativeDevice[], { llama }: EngineOptions): NativeDevice[] {
  const named = llama?.devices;
  return named === undefined ? present : present.filter(({ name }) => named.includes(name));
}

/** The one that was given, or powers of two times the least up to what the model was trained for. */
function candidateContexts({ contextSize }: EngineOptions, trained = usualContext): number[] {
  if (contextSize !== undefined) return [contextSize];
  const sizes: number[] = [];
  for (let size = Math.min(leastContext, trained); size < trained; size *= 2) sizes.push(size);
  return [...sizes, trained];
}

/** All of them (-1), or the largest number that fits. */
async function mostLayers(
  layers: number,
  fits: (layers: number) => Promise<boolean>,
): Promise<number> {
  if (await fits(-1)) return -1;
  let [most, tooMany] = [0, layers + 1];
  while (tooMany - most > 1) {
    const middle = Math.floor((most + tooMany) / 2);
    if (await fits(middle)) most = middle;
    else tooMany = middle;
  }
  return most;
}

interface Room {
  fits: boolean;
  /** Share of the memory that weights leave, where the cache takes the most of it. */
  cacheFraction: number;
}

function roomFor(needs: NativeMemoryNeeds, availableBytes: number, devices: NativeDevice[]): Room {
  const places = [
    { parts: needs.host, free: availableBytes },
    ...needs.devices.map((parts) => {
      const device = devices.find(({ name }) => name === parts.name);
      return { parts, free: Math.max(0, (device?.freeBytes ?? 0) - deviceMargin) };
    }),
  ].filter(({ parts }) => totalOf(parts) > 0);
  const shareOf = ({ parts, free }: (typeof places)[number]): number =>
    parts.cache === 0 ? 0 : parts.cache / Math.max(1, free - parts.weights);
  return {
    fits: places.every(({ parts, free }) => totalOf(parts) <= free),
    cacheFraction: Math.max(0, ...places.map(shareOf)),
  };
}
