/** The engine's options: defaults for this model and machine, and ranges. */

import { type FermataError, invalidOption } from "../errors.ts";
import type { NativeLoadOptions, NativeRedisAddress } from "../native/addon-types.ts";
import type { EngineOptions, KvCacheType } from "./types.ts";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, resolve } from "node:path";

type OptionName = keyof EngineOptions;
type WholeOption = {
  [Name in OptionName]-?: EngineOptions[Name] extends number | undefined ? Name : never;
}[OptionName];

/** The model and machine that the defaults depend on. */
export interface LoadFacts {
  /** Undefined when the model does not say. */
  trainedContext: number | undefined;
  /** For how many positions it has learned weights; undefined where it computes them. */
  positions?: number | undefined;
  /** Tokens that the draft model was trained for; undefined: there is none, or it does not say. */
  draftContext?: number | undefined;
  physicalCores: number;
}

/** Requests that may wait. */
export const defaultMaxQueue = 256;

const mib = 2 ** 20;
/** Room for agents' tools and results, where the memory has it. */
export const usualContext = 8192;
/** llama.cpp pads sequences to it. */
export const cellBlock = 256;
// llama.cpp's LLAMA_MAX_SEQ.
const maximumSlots = 256;
/** Longer drafts are seldom right to their end, and logits of many rows take memory. */
const mostDrafted = 15;
/** Tokens of `contextSize`, which measuring puts smaller ones in place of. */
const longestOption = 2 ** 24;
const maximumInt32 = 2 ** 31 - 1;

/**
 * Fills in the defaults for this model and machine, and checks what the user gave. `fitOptions` chooses
 * what depends on the memory: context, layers on devices, host memory for sequences.
 * @throws FermataError invalid_option, its `param` naming the option
 */
export function resolveOptions(options: EngineOptions, facts: LoadFacts): NativeLoadOptions {
  const whole = (name: WholeOption, standard: number, lowest: number, highest: number): number =>
    integer(name, options[name] ?? standard, lowest, highest);
  const parallel = whole("parallel", 4, 1, maximumSlots);
  const retainedSlots = whole("retainedSlots", parallel, 0, maximumSlots);
  if (parallel + retainedSlots > maximumSlots)
    throw refused(
      "parallel",
      `parallel and retainedSlots may not exceed ${maximumSlots} together.`,
    );
  // -1: all layers.
  const gpuLayers = whole("gpuLayers", 0, -1, 10_000);
  const onGpu = gpuLayers !== 0;
  const deterministic = options.deterministic ?? false;
  const kvLayout = resolveLayout(options.kvLayout ?? "auto", onGpu && !deterministic);
  if (deterministic && kvLayout === "unified")
    throw refused("kvLayout", "A deterministic engine needs the streams layout.");
  const cacheTypeK = options.cacheTypeK ?? "f16";
  const cacheTypeV = options.cacheTypeV ?? "f16";
  const usual = Math.min(contextLimit(facts) ?? usualContext, usualContext);
  const contextSize = whole("contextSize", usual, 32, longestOption);
  // In streams each slot has its own cells; a pool needs cells for the sequences that may run at once.
  const sequences = kvLayout === "streams" ? parallel + retainedSlots : parallel;
  const cellsTotal = contextSize * sequences;
  checkContext(contextSize, cellsTotal, facts);
  const stepTokenBudget = whole("stepTokenBudget", 512, parallel, 16_384);
  const cacheRam = whole("cacheRam", 0, 0, 2 ** 24);
  const cacheDisk = whole("cacheDisk", 0, 0, 2 ** 30);
  const { cacheDir, cacheRemote, draftModel } = options;
  const draftMtp = options.draftMtp ?? false;
  checkDrafts(options);
  if (cacheDisk > 0 && cacheDir === undefined && cacheRemote === undefined)
    throw refused("cacheDir", "cacheDisk needs cacheDir: a folder for the files.");
  return {
    modelPath: options.modelPath,
    contextSize,
    parallel,
    retainedSlots,
    cellsTotal,
    cacheRamBytes: cacheRam * mib,
    cacheDiskBytes: cacheDisk * mib,
    cacheDir: cacheDir === undefined ? "" : resolve(cacheDir, folderOf(options.modelPath)),
    ...(cacheRemote === undefined ? {} : { cacheRemote: redisAddress(cacheRemote) }),
    threads: whole("threads", facts.physicalCores, 1, 512),
    adaptThreads: options.threads === undefined,
    gpuLayers,
    llama: options.llama ?? {},
    kvLayout,
    flashAttention: resolveFlashAttention(options.flashAttention ?? "auto", cacheTypeV),
    cacheTypeK,
    cacheTypeV,
    deterministic,
    draftLimit: options.drafts === false ? 0 : mostDrafted,
    draftsAnywhere: options.drafts ?? (draftMtp || draftModel !== undefined),
    draftMtp,
    ...(draftModel === undefined
      ? {}
      : {
          draftModel: {
            modelPath: draftModel,
            gpuLayers: onGpu ? -1 : 0,
            contextSize: facts.draftContext ?? longestOption,
          },
        }),
    stepTokenBudget,
    targetItlMs: whole("targetItlMs", 250, 0, maximumInt32),
    elasticTarget: options.targetItlMs === undefined,
    microBatch: Math.min(whole("microBatch", 512, 1, 16_384), stepTokenBudget),
    holdLeaseMs: whole("holdLeaseMs", 600_000, 1, maximumInt32),
    maxQueue: whole("maxQueue", defaultMaxQueue, 0, 65_536),
    audit: options.audit ?? false,
  };
}

function checkContext(contextSize: number, cellsTotal: number, { positions }: LoadFacts): void {
  const longest = positions === undefined ? Infinity : longestContext(positions);
  if (contextSize > longest)
    throw refused(
      "contextSize",
      `contextSize may be ${longest} at most, not ${contextSize}: the model has weights for ${positions} positions.`,
    );
  if (cellsTotal > maximumInt32)
    throw refused("contextSize", `The cache would have ${cellsTotal} cells, 2^31 or more.`);
}

function checkDrafts(options: EngineOptions): void {
  const drafters = ["draftModel", "draftMtp"] as const;
  const [first, second] = drafters.filter((name) => (options[name] ?? false) !== false);
  if (options.deterministic === true && first !== undefined)
    throw refused(first, `A deterministic engine has no drafts: leave ${first} out.`);
  if (second !== undefined)
    throw refused(second, `${second} and ${first} exclude each other. Give one.`);
}

/** Of a model's cache files. Two models may have one file name, and each deletes what is not its own. */
function folderOf(modelPath: string): string {
  const place = createHash("sha256").update(resolve(modelPath)).digest("hex").slice(0, 8);
  return `${basename(modelPath, ".gguf")}-${place}`;
}

/** What the model was trained for, where its weights allow so much. Undefined: it does not say. */
export function contextLimit({
  trainedContext,
  positions,
}: Pick<LoadFacts, "trainedContext" | "positions">): number | undefined {
  if (positions === undefined) return trainedContext;
  const longest = longestContext(positions);
  return Math.min(trainedContext ?? longest, longest);
}

/** Whole blocks of cells: llama.cpp ends the process at a row behind the last position. */
function longestContext(positions: number): number {
  return Math.floor(positions / cellBlock) * cellBlock;
}

/** On a CPU, streams read only a sequence's own cells. On a GPU, a pool shares cells at no cost. */
function resolveLayout(
  layout: "streams" | "unified" | "auto",
  onGpu: boolean,
): "streams" | "unified" {
  if (layout !== "auto") return layout;
  return onGpu ? "unified" : "streams";
}

/** @throws FermataError invalid_option */
function redisAddress(text: string): NativeRedisAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  const form = "redis://[user:password@]host[:port][/database]";
  if (url?.protocol === "rediss:")
    throw refused(
      "cacheRemote",
      `cacheRemote has no TLS: put a proxy such as stunnel in front, and give ${form}.`,
    );
  const database = Number(/^\/?(\d{0,9})$/.exec(url?.pathname ?? "x")?.[1] ?? Number.NaN);
  const known = url?.protocol === "redis:" || url?.protocol === "valkey:";
  // The text may hold a password.
  if (!known || url.hostname === "" || Number.isNaN(database) || url.search || url.hash)
    throw refused("cacheRemote", `cacheRemote must be ${form}.`);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? 6379 : Number(url.port),
    user: decoded(url.username),
    password: decoded(url.password),
    database,
  };
}

/** Its text may be a password, and stands in no error. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw refused(
      "cacheRemote",
      "cacheRemote has a % in its user or password that is no code: write a % itself as %25.",
    );
  }
}

/** Quantized values need it. */
function resolveFlashAttention(
  choice: "on" | "off" | "auto",
  cacheTypeV: KvCacheType,
): "on" | "off" | "auto" {
  if (choice === "off" && /q\d/.test(cacheTypeV))
    throw refused(
      "cacheTypeV",
      `A cache of ${cacheTypeV} values needs flash attention: leave it on auto, or store values as f16.`,
    );
  return choice;
}

function integer(name: OptionName, value: number, lowest: number, highest: number): number {
  if (!Number.isInteger(value) || value < lowest || value > highest)
    throw refused(
      name,
      `${name} must be a whole number from ${lowest} to ${highest}, not ${value}.`,
    );
  return value;
}

function refused(name: OptionName, message: string): FermataError {
  return invalidOption(message, name);
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
