/** Which files of a repository are the model that is wanted. */

import { FermataError, invalidOption } from "../../errors.ts";
import { groupModelFiles, type ModelFiles } from "../model-files.ts";
import { didYouMean } from "../../near-names.ts";
import { bytesText } from "../progress.ts";
import type { HubFile } from "./hub.ts";

export interface WantedModel {
  repository: string;
  /** A file's name or path, or undefined. */
  file: string | undefined;
  /** From `OWNER/NAME:Q8_0`, or undefined. */
  quantization: string | undefined;
}

/** Small for what it loses, then what is nearest to it, then what is exact. */
const preference = [
  ["Q4_K_M"],
  ["UD-Q4_K_XL", "MXFP4", "MXFP4_MOE"],
  ["Q4_K_S", "Q4_0", "IQ4_XS", "IQ4_NL"],
  ["Q5_K_M", "Q5_K_S", "Q5_0"],
  ["Q6_K", "Q8_0"],
  ["Q3_K_M", "Q3_K_L"],
  ["BF16", "F16"],
];

/** @throws FermataError hub_not_found | invalid_option, listing what there is */
export function chooseFiles(files: readonly HubFile[], wanted: WantedModel): HubFile[] {
  const models = groupModelFiles(files.map(({ path }) => path));
  const listing = listModels(models, files);
  if (models.length === 0) {
    throw new FermataError(
      "hub_not_found",
      `${wanted.repository} has no GGUF files. Look for a repository of the same model whose name ends in -GGUF.`,
      { param: "hf" },
    );
  }
  const model = pick(models, wanted, listing);
  if (model.missing > 0) {
    throw new FermataError(
      "hub_not_found",
      `${model.first} of ${wanted.repository} is split, and ${model.missing} of its parts are missing.`,
      { param: "file" },
    );
  }
  return model.paths.map((path) => files.find((file) => file.path === path)!);
}

function pick(models: ModelFiles[], wanted: WantedModel, listing: string): ModelFiles {
  const { file, quantization } = wanted;
  if (file !== undefined) {
    const matches = models.filter(({ paths }) =>
      paths.some((path) => path === file || path.endsWith(`/${file}`)),
    );
    if (matches.length === 1) return matches[0]!;
    if (matches.length > 1) throw ambiguous(`several files named ${file}`, listing);
    const names = models.map(({ first }) => first);
    throw new FermataError(
      "hub_not_found",
      `${wanted.repository} has no file ${file}.${didYouMean(file, names)} It has: ${listing}.`,
      { param: "file" },
    );
  }
  if (quantization !== undefined) {
    const label = quantization.toUpperCase();
    const matches = models.filter((model) => model.quantization === label);
    if (matches.length === 1) return matches[0]!;
    if (matches.length > 1) throw ambiguous(`several models in ${label}`, listing);
    throw new FermataError(
      "hub_not_found",
      `${wanted.repository} has nothing in ${label}. It has: ${listing}.`,
      { param: "hf" },
    );
  }
  if (models.length === 1) return models[0]!;
  for (const labels of preference) {
    const matches = models.filter(({ quantization: label }) => labels.includes(label ?? ""));
    if (matches.length === 1) return matches[0]!;
    if (matches.length > 1) throw ambiguous(`several models in ${labels.join(" or ")}`, listing);
  }
  throw ambiguous(`${models.length} models`, listing);
}

function ambiguous(what: string, listing: string): FermataError {
  return invalidOption(
    `The repository has ${what}: name one with --file. It has: ${listing}.`,
    "file",
  );
}

/** `a.gguf (1.2 GB), b.gguf (3 parts, 40 GB)` */
function listModels(models: readonly ModelFiles[], files: readonly HubFile[]): string {
  const size = new Map(files.map((file) => [file.path, file.size]));
  return models
    .map(({ first, paths }) => {
      const bytes = paths.reduce((sum, path) => sum + (size.get(path) ?? 0), 0);
      const parts = paths.length > 1 ? `${paths.length} parts, ` : "";
      return `${first} (${parts}${bytesText(bytes)})`;
    })
    .join(", ");
}
