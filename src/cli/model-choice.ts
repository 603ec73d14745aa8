/** Which file is served and how it samples by default. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Sampling } from "../engine/types.ts";
import { FermataError } from "../errors.ts";
import { groupModelFiles, modelName } from "./model-files.ts";

type DefaultSampling = Omit<Sampling, "seed" | "logitBias" | "script">;

export interface ModelChoice {
  path: string;
  /** File name without `.gguf` and part; what `model` says in responses. */
  id: string;
  sampling: DefaultSampling;
}

/**
 * models/manifest.json. `sampling` replaces defaults for a file that stands beside the manifest: a
 * small model may need to be greedy.
 */
interface ModelManifest {
  /** The file that is served when none is named. */
  default: string;
  models: Record<string, { sampling?: Partial<DefaultSampling> }>;
}

/** Middle of the road, as in most servers. */
const fieldSampling: DefaultSampling = {
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

/** @throws FermataError model_not_found, if none is named and none is bundled, or a folder has not one */
export function chooseModel(given: string | undefined, bundled: string): ModelChoice {
  const path = given === undefined ? bundledModel(bundled) : resolveModelPath(given);
  const file = basename(path);
  const overrides = readManifest(dirname(path))?.models[file]?.sampling ?? {};
  return {
    path,
    id: modelName(path),
    sampling: { ...fieldSampling, ...knownKeys(overrides) },
  };
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
    ([key, value]) => key in fieldSampling && typeof value === "number",
  );
  return Object.fromEntries(known);
}
