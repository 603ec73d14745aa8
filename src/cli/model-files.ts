/** GGUF files of a folder or a repository: which is served, how it samples, and which are one model. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Sampling } from "../engine/types.ts";
import { FermataError } from "../errors.ts";

type DefaultSampling = Omit<Sampling, "seed" | "logitBias" | "script">;

/**
 * models/manifest.json. `sampling` replaces defaults for a file that stands beside the manifest: a
 * small model may need to be greedy.
 */
interface ModelManifest {
  /** The file that is served when none is named. */
  default: string;
  models: Record<string, { sampling?: Partial<DefaultSampling> }>;
}

/** Of a model whose file and manifest say nothing else. */
export const defaultSampling: DefaultSampling = {
  temperature: 0.7,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  typicalP: 1,
  repeatPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  penaltyLastN: 64,
};

/** Its path. @throws FermataError model_not_found, if none is named and none is bundled, or a folder has not one */
export function chooseModel(given: string | undefined, bundled: string): string {
  return given === undefined ? bundledModel(bundled) : resolveModelPath(given);
}

/**
 * As the manifest beside a file says, else the file itself.
 * @param ofFile what is in the file
 */
export function samplingOf(path: string, ofFile: Partial<DefaultSampling> = {}): DefaultSampling {
  const overrides = readManifest(dirname(path))?.models[basename(path)]?.sampling ?? {};
  return { ...defaultSampling, ...ofFile, ...knownKeys(overrides) };
}

/** Of a folder, its one model, or the one that its manifest names. Of anything else, itself. */
function resolveModelPath(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return path;
  const file = readManifest(path)?.default;
  if (file !== undefined) return join(path, file);
  const models = groupModelFiles(readdirSync(path));
  if (models.length === 1) return join(path, models[0]!.first);
  const names = models.map(({ first }) => first).join(", ");
  const what = models.length === 0 ? "has no GGUF file" : `has several models: ${names}`;
  throw new FermataError("model_not_found", `The folder ${path} ${what}. Name one file.`, {
    param: "model",
  });
}

/** Unix seconds of the file's last change. */
export function modelCreated(path: string): number {
  return Math.floor(statSync(path).mtimeMs / 1000);
}

function bundledModel(directory: string): string {
  const file = readManifest(directory)?.default;
  if (file !== undefined) return join(directory, file);
  throw new FermataError(
    "model_not_found",
    "No model is bundled here. Name one with --model FILE.",
    { param: "model" },
  );
}

/** Undefined where there is none, or where a file of that name is something else. */
function readManifest(directory: string): ModelManifest | undefined {
  try {
    const json = JSON.parse(
      readFileSync(join(directory, "manifest.json"), "utf8"),
    ) as Partial<ModelManifest> | null;
    if (typeof json?.default === "string" && typeof json.models === "object")
      return json as ModelManifest;
  } catch {
    // No manifest.
  }
  return undefined;
}

function knownKeys(overrides: Partial<DefaultSampling>): Partial<DefaultSampling> {
  const known = Object.entries(overrides).filter(
    ([key, value]) => key in defaultSampling && typeof value === "number",
  );
  return Object.fromEntries(known);
}

export interface ModelFiles {
  /** The first part's path. */
  first: string;
  /** All of them, in order; one for a model that is not split. */
  paths: string[];
  /** `Q4_K_M`, as the name says, or null. */
  quantization: string | null;
  /** Parts that the name speaks of and that are not there. */
  missing: number;
}

const partPattern = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const quantizationPattern =
  /(?:^|[-._/])((?:UD-)?(?:I?Q\d_[A-Z0-9]+(?:_[A-Z]+)*|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|F32))(?=[-._/]|$)/gi;
/** Projectors, importance matrices, adapters: files beside a model, none by themselves. */
const companionPattern = /(^|[-._/])(mmproj|imatrix|lora|adapter)([-._]|$)/i;

/** Of all `paths`, in the order of their names. */
export function groupModelFiles(paths: readonly string[]): ModelFiles[] {
  const groups = new Map<string, string[]>();
  for (const path of [...paths].toSorted()) {
    if (!/\.gguf$/i.test(path) || companionPattern.test(baseName(path))) continue;
    const part = partPattern.exec(path);
    const key = part === null ? path : `${part[1]}-of-${part[3]}`;
    groups.set(key, [...(groups.get(key) ?? []), path]);
  }
  return [...groups.values()].map((parts) => {
    const total = Number(partPattern.exec(parts[0]!)?.[3] ?? 1);
    return {
      first: parts[0]!,
      paths: parts,
      quantization: quantizationOf(parts[0]!),
      missing: total - parts.length,
    };
  });
}

/** The last one that the name has: a folder may be named after its quantization too. */
function quantizationOf(path: string): string | null {
  const found = [...path.replace(/\.gguf$/i, "").matchAll(quantizationPattern)];
  return found.at(-1)?.[1]?.toUpperCase() ?? null;
}

/** Without folder, part number and ending: what people call the model. */
export function modelName(path: string): string {
  return baseName(path)
    .replace(partPattern, "$1")
    .replace(/\.gguf$/i, "");
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
