/** Is a model file sound? Checked before llama.cpp looks at it. */

import { closeSync, fstatSync, openSync, statSync } from "node:fs";
import { FermataError } from "../errors.ts";
import { GgufCursor } from "./gguf-cursor.ts";
import { type GgufHeader, type GgufValue, readGgufHeader } from "./gguf-header.ts";

/** A model file whose structure is sound, so that llama.cpp may look at it. */
export interface CheckedModel {
  /** Its file, then the other parts of a split model. */
  parts: readonly [path: string, ...others: string[]];
  architecture: string;
  /** Undefined when the file does not say. */
  trainedContext: number | undefined;
  /** It has learned weights for so many and reads no longer context. Undefined: its positions have no end. */
  positions: number | undefined;
  layers: number;
  /** Of these, the ones behind the last that say the token after the next (multi-token prediction). */
  mtpLayers: number;
  /** Of all parts. */
  weightBytes: number;
  /** Null: it has none, as base models have. */
  chatTemplate: string | null;
  /** How most of its weights are stored, as `Q4_K_M`. Null: it does not say. */
  fileType: string | null;
  /** Each token is read with those behind it too, so no next one can be drawn: models for vectors and ranking. */
  readsOnly: boolean;
  /** It says how well a document answers a query. */
  ranks: boolean;
  /** How its makers draw from it. */
  sampling: Partial<FileSampling>;
}

type FileSampling = Record<(typeof samplingKeys)[keyof typeof samplingKeys], number>;

/** Under `general.sampling.`, as llama.cpp has them. */
const samplingKeys = {
  temp: "temperature",
  top_k: "topK",
  top_p: "topP",
  min_p: "minP",
  penalty_repeat: "repeatPenalty",
  penalty_last_n: "penaltyLastN",
} as const;

/**
 * Checks what can be checked without reading weights, all parts of a split model included.
 * @throws FermataError model_not_found | model_invalid
 */
export function checkGguf(path: string): CheckedModel {
  const { metadata, tensorCount, ranks, positions } = readPart(path);
  const architecture = metadata.get("general.architecture");
  if (typeof architecture !== "string") throw invalid(path, "names no architecture");
  if (architecture === "clip") {
    throw invalid(path, "is an image projector, not a language model");
  }
  if (metadata.get("general.type") === "adapter") {
    throw invalid(path, "is an adapter, not a whole model");
  }
  if (tensorCount === 0) throw invalid(path, "holds no weights, only a vocabulary");
  checkVocabulary(path, metadata);
  const parts = [path, ...checkOtherParts(path, metadata)] as const;
  const context = metadata.get(`${architecture}.context_length`);
  const number = (name: string): number => {
    const value = metadata.get(`${architecture}.${name}`);
    return typeof value === "number" ? value : 0;
  };
  const template = metadata.get("tokenizer.chat_template");
  return {
    parts,
    architecture,
    trainedContext: typeof context === "number" ? context : undefined,
    positions,
    layers: number("block_count"),
    mtpLayers: number("nextn_predict_layers"),
    weightBytes: parts.reduce((sum, part) => sum + statSync(part).size, 0),
    chatTemplate: typeof template === "string" ? template : null,
    fileType: fileTypeName(metadata.get("general.file_type")),
    readsOnly: metadata.get(`${architecture}.attention.causal`) === false,
    ranks,
    sampling: Object.fromEntries(
      Object.entries(samplingKeys).flatMap(([key, name]) => {
        const value = metadata.get(`general.sampling.${key}`);
        return typeof value === "number" ? [[name, value]] : [];
      }),
    ),
  };
}

function readPart(path: string): GgufHeader {
  const descriptor = open(path);
  try {
    const status = fstatSync(descriptor);
    if (status.isDirectory()) {
      throw notFound(path, "is a directory; give the path of the .gguf file in it");
    }
    if (!status.isFile()) throw notFound(path, "is not a file");
    if (status.size === 0) throw invalid(path, "is empty");
    const header = readGgufHeader(new GgufCursor(path, descriptor, status.size));
    if (header.end > status.size) {
      throw invalid(path, `is truncated: it has ${status.size} of ${header.end} bytes`);
    }
    return header;
  } finally {
    closeSync(descriptor);
  }
}

function open(path: string): number {
  try {
    return openSync(path, "r");
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === "ENOENT";
    const reason = missing
      ? "does not exist; give the path of a .gguf file"
      : `cannot be read (${(cause as Error).message})`;
    throw new FermataError("model_not_found", `The model ${path} ${reason}.`, { cause });
  }
}

/** @returns the paths of a split model's parts behind the first */
function checkOtherParts(path: string, metadata: Map<string, GgufValue>): string[] {
  const count = metadata.get("split.count") ?? 1;
  if (typeof count !== "number" || count <= 1) return [];
  const match = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/.exec(path);
  if (metadata.get("split.no") !== 0 || !match || Number(match[3]) !== count) {
    throw invalid(path, `is one of ${count} parts; give the first one, under its original name`);
  }
  const others = Array.from(
    { length: count - 1 },
    (_, index) => `${match[1]}-${String(index + 2).padStart(5, "0")}-of-${match[3]}.gguf`,
  );
  others.forEach(readPart);
  return others;
}

function checkVocabulary(path: string, metadata: Map<string, GgufValue>): void {
  const size = lengthOf(metadata.get("tokenizer.ggml.tokens"));
  if (size === 0) throw invalid(path, "has no vocabulary");
  for (const [key, value] of metadata) {
    // llama.cpp would replace it by a default without a word to the user.
    if (/^tokenizer\.ggml\.\w+_token_id$/.test(key) && Number(value) >= size) {
      throw invalid(path, `is damaged: ${key} is ${value}, but its vocabulary has ${size} tokens`);
    }
  }
}

function lengthOf(value: GgufValue | undefined): number {
  return typeof value === "object" ? value.length : 0;
}

function notFound(path: string, what: string): FermataError {
  return new FermataError("model_not_found", `The model ${path} ${what}.`);
}

function invalid(path: string, what: string): FermataError {
  return new FermataError("model_invalid", `${path} ${what}.`);
}

/** How the weights are stored, by llama.cpp's numbers (`llama_ftype`); numbers that are missing are not used any more. */
const fileTypes: Record<number, string> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  7: "Q8_0",
  8: "Q5_0",
  9: "Q5_1",
  10: "Q2_K",
  11: "Q3_K_S",
  12: "Q3_K_M",
  13: "Q3_K_L",
  14: "Q4_K_S",
  15: "Q4_K_M",
  16: "Q5_K_S",
  17: "Q5_K_M",
  18: "Q6_K",
  19: "IQ2_XXS",
  20: "IQ2_XS",
  21: "Q2_K_S",
  22: "IQ3_XS",
  23: "IQ3_XXS",
  24: "IQ1_S",
  25: "IQ4_NL",
  26: "IQ3_S",
  27: "IQ3_M",
  28: "IQ2_S",
  29: "IQ2_M",
  30: "IQ4_XS",
  31: "IQ1_M",
  32: "BF16",
  36: "TQ1_0",
  37: "TQ2_0",
  38: "MXFP4_MOE",
  39: "NVFP4",
  40: "Q1_0",
  41: "Q2_0",
};

/** Null: the file does not say, or says what is not known. @param type `general.file_type` */
function fileTypeName(type: unknown): string | null {
  return typeof type === "number" ? (fileTypes[type] ?? null) : null;
}
