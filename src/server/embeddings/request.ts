/** A body of POST /v1/embeddings as plain, checked data. Pure. */

import { readInputs, type PromptInput } from "../body/prompt-inputs.ts";
import { readModel } from "../body/common.ts";
import { expectBody, fieldError, isAbsent, readNumber } from "../body/fields.ts";
import { embeddingParameters } from "./fields.ts";
import { checkParameters } from "../body/parameter.ts";
import type { Warn } from "../body/warnings.ts";

export interface EmbeddingRequest {
  model: string | null;
  inputs: PromptInput[];
  /** Numbers a vector. */
  dimensions: number;
  encoding: "float" | "base64";
}

export interface EmbeddingLimits {
  dimensions: number;
  vocabularySize: number;
}

/** As OpenAI has it. */
const maxInputs = 2048;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseEmbeddingRequest(
  body: unknown,
  limits: EmbeddingLimits,
  warn: Warn,
): EmbeddingRequest {
  expectBody(body, 'Send {"input": "…"}');
  checkParameters(embeddingParameters, body, warn);
  const range = { min: 1, max: limits.dimensions, integer: true };
  return {
    model: readModel(body),
    inputs: readInputs(body["input"], "input", limits.vocabularySize, maxInputs),
    dimensions: readNumber(body, "dimensions", range, limits.dimensions),
    encoding: readEncoding(body["encoding_format"]),
  };
}

function readEncoding(value: unknown): "float" | "base64" {
  if (isAbsent(value) || value === "float") return "float";
  if (value === "base64") return "base64";
  const code = typeof value === "string" ? "invalid_value" : "invalid_type";
  throw fieldError(code, "encoding_format", "is not a known format", 'Send "float" or "base64"');
}
