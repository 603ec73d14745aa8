/** A body of POST /completion as plain, checked data. */

import { readInputs, type PromptInput } from "../body/prompt-inputs.ts";
import { maxTopLogprobs, readModel } from "../body/common.ts";
import type { Sampling } from "../../engine/types.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import {
  expectBody,
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readBoolean,
  readNumber,
} from "../body/fields.ts";
import { nativeCompletionParameters } from "./native-fields.ts";
import { checkParameters } from "../body/parameter.ts";
import { readDocument } from "../body/guidance.ts";
import { readMaxTokens, readSampling, readStop, type SamplingLimits } from "../body/sampling.ts";
import type { Warn } from "../body/warnings.ts";

export interface NativeCompletionRequest {
  model: string | null;
  /** Each in pieces that follow each other. At least one. */
  prompts: PromptInput[][];
  /** They came as a list, and the answers do too. */
  isList: boolean;
  sampling: Sampling;
  stop: string[];
  /** Undefined: no limit but the context's. */
  maxTokens: number | undefined;
  topLogprobs: number | undefined;
  document: DocumentFormat | undefined;
  closeAtLimit: boolean;
  returnTokens: boolean;
  /** Empty: all. */
  responseFields: string[];
  stream: boolean;
}

const maxPrompts = 128;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseNativeCompletion(
  body: unknown,
  limits: SamplingLimits,
  warn: Warn,
): NativeCompletionRequest {
  expectBody(body, 'Send {"prompt": "…"}');
  checkParameters(nativeCompletionParameters, body, warn);
  const probabilities = { min: 0, max: maxTopLogprobs, integer: true };
  return {
    model: readModel(body),
    ...readPrompts(body["prompt"], limits.vocabularySize),
    sampling: readSampling(body, limits),
    stop: readStop(body["stop"]),
    maxTokens: readMaxTokens(body, limits),
    topLogprobs: readNumber(body, "n_probs", probabilities, 0) || undefined,
    document: readDocument(body),
    closeAtLimit: readBoolean(body, "close_at_limit", false),
    returnTokens: readBoolean(body, "return_tokens", false),
    responseFields: readNames(body["response_fields"]),
    stream: readBoolean(body, "stream", false),
  };
}

function readPrompts(
  value: unknown,
  vocabularySize: number,
): Pick<NativeCompletionRequest, "prompts" | "isList"> {
  const isList = Array.isArray(value) && value.length > 0 && !value.some(isToken);
  if (!isList) return { prompts: [readPrompt(value, "prompt", vocabularySize)], isList };
  if (value.length > maxPrompts) {
    const remedy = `Send up to ${maxPrompts}`;
    throw fieldError("invalid_value", "prompt", `has ${value.length} entries`, remedy);
  }
  const read = (prompt: unknown, index: number): PromptInput[] =>
    readPrompt(prompt, `prompt[${index}]`, vocabularySize);
  return { prompts: value.map(read), isList };
}

function readPrompt(value: unknown, field: string, vocabularySize: number): PromptInput[] {
  if (isObject(value)) {
    if (!isAbsent(value["multimodal_data"]))
      throw fieldError(
        "image_not_supported",
        `${field}.multimodal_data`,
        "has media, and the model reads text only",
        "Send prompt_string only",
      );
    return readInputs(value["prompt_string"], `${field}.prompt_string`, vocabularySize, 1);
  }
  const isMixed = Array.isArray(value) && value.some(isToken) && !value.every(isToken);
  if (!isMixed) return readInputs(value, field, vocabularySize, 1);
  return value.flatMap((piece: unknown, index) =>
    readInputs(isToken(piece) ? [piece] : piece, `${field}[${index}]`, vocabularySize, 1),
  );
}

function isToken(value: unknown): boolean {
  return typeof value === "number";
}

function readNames(value: unknown): string[] {
  if (isAbsent(value)) return [];
  if (Array.isArray(value) && value.every((name) => typeof name === "string")) return value;
  const problem = `must be an array of strings, not ${kindOf(value)}`;
  throw fieldError("invalid_type", "response_fields", problem, 'Send ["content"]');
}
